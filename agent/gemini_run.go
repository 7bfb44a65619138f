package agent

import "fmt"

var geminiHeadless = headless{
	command: func(o RunOptions) (Invocation, error) {
		argv := []string{"--output-format", "json"}
		if o.Model != "" {
			argv = append(argv, "--model", o.Model)
		}
		if o.Session != "" && o.Fork {
			return Invocation{}, fmt.Errorf("gemini: fork: %w", ErrUnsupported)
		}
		if o.Session != "" {
			argv = append(argv, "--resume", o.Session)
		}
		switch o.Mode {
		case Plan:
			argv = append(argv, "--approval-mode", "plan")
		case Edits:
			argv = append(argv, "--approval-mode", "auto_edit")
		case All:
			argv = append(argv, "--approval-mode", "yolo")
		}
		if o.TrustHooks { // it runs no hooks of a project in a folder that is not trusted
			argv = append(argv, "--skip-trust")
		}
		return Invocation{Argv: append(argv, o.Extra...), Stdin: asked(o)}, nil
	},
	result: func(values []object) (r Result) {
		for _, v := range values {
			if v["response"] == nil && v["error"] == nil && v["stats"] == nil {
				continue
			}
			r.Session, r.Text = orElse(v.str("session_id"), r.Session), v.str("response")
			for _, raw := range v.sub("stats").sub("models") {
				model, err := parseObject(raw)
				if err != nil {
					continue
				}
				tokens := model.sub("tokens")
				r.Usage.InputTokens += int64(tokens.number("prompt"))
				r.Usage.OutputTokens += int64(tokens.number("candidates") + tokens.number("thoughts"))
			}
			if e := v.sub("error"); len(e) > 0 {
				kind := FailedAPI
				if e.str("type") == "FatalTurnLimitedError" {
					kind = FailedLimit
				}
				r.Failure = &Failure{Kind: kind, Message: orElse(e.str("message"), e.str("type"))}
			}
		}
		return r
	},
}
