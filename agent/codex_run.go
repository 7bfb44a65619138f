package agent

import "fmt"

var codexHeadless = headless{
	command: func(o RunOptions) (in Invocation, err error) {
		argv := []string{"exec", "--json", "--skip-git-repo-check"}
		if o.Model != "" {
			argv = append(argv, "--model", o.Model)
		}
		switch o.Mode {
		case Plan:
			argv = append(argv, "--sandbox", "read-only")
		case Edits:
			argv = append(argv, "--sandbox", "workspace-write")
		case All:
			argv = append(argv, "--dangerously-bypass-approvals-and-sandbox")
		}
		if o.TrustHooks {
			argv = append(argv, "--dangerously-bypass-hook-trust")
		}
		if len(o.Schema) > 0 {
			if o.SchemaFile == "" {
				return in, fmt.Errorf("codex: a schema without a file for it: %w", ErrUnsupported)
			}
			argv = append(argv, "--output-schema", o.SchemaFile)
			in.Files = []File{{Path: o.SchemaFile, Content: o.Schema}}
		}
		argv = append(argv, o.Extra...)
		switch {
		case o.Session != "" && o.Fork:
			argv = append(argv, "fork", o.Session)
		case o.Session != "":
			argv = append(argv, "resume", o.Session)
		}
		in.Argv, in.Stdin = append(argv, "-"), o.Prompt
		return in, nil
	},
	result: func(values []object) (r Result) {
		for _, v := range values {
			switch item := v.sub("item"); v.str("type") {
			case "thread.started":
				r.Session = v.str("thread_id")
			case "item.completed":
				if item.str("type") == "agent_message" {
					r.Text = item.str("text")
				}
			case "turn.completed":
				usage := v.sub("usage")
				r.Usage = Usage{InputTokens: int64(usage.number("input_tokens")), OutputTokens: int64(usage.number("output_tokens"))}
				r.Failure = nil // what went wrong before was tried again
			case "turn.failed":
				r.Failure = &Failure{Kind: FailedAPI, Message: v.sub("error").str("message")}
			case "error":
				r.Failure = &Failure{Kind: FailedAPI, Message: v.str("message")}
			}
		}
		return r
	},
}
