package agent

var claudeHeadless = headless{
	command: func(o RunOptions) (Invocation, error) {
		argv := []string{"-p", "--output-format", "json"}
		if o.Model != "" {
			argv = append(argv, "--model", o.Model)
		}
		if o.Session != "" {
			argv = append(argv, "--resume", o.Session)
		}
		if o.Session != "" && o.Fork {
			argv = append(argv, "--fork-session")
		}
		if len(o.Schema) > 0 {
			argv = append(argv, "--json-schema", string(o.Schema))
		}
		switch o.Mode {
		case Plan:
			argv = append(argv, "--permission-mode", "plan")
		case Edits:
			argv = append(argv, "--permission-mode", "acceptEdits")
		case All:
			argv = append(argv, "--permission-mode", "bypassPermissions")
		}
		return Invocation{Argv: append(argv, o.Extra...), Stdin: o.Prompt}, nil
	},
	result: func(values []object) Result {
		var r Result
		for _, v := range values {
			if v.str("type") == "result" {
				r = claudeResult(v)
			}
		}
		return r
	},
}

func claudeResult(v object) Result {
	usage := v.sub("usage")
	r := Result{
		Text: v.str("result"), Structured: v.raw("structured_output"), Session: v.str("session_id"),
		Usage: Usage{
			InputTokens:  int64(usage.number("input_tokens") + usage.number("cache_creation_input_tokens") + usage.number("cache_read_input_tokens")),
			OutputTokens: int64(usage.number("output_tokens")), CostUSD: v.number("total_cost_usd"),
		},
	}
	kind := FailedAnswer
	switch v.str("subtype") {
	case "success":
		if !v.yes("is_error") {
			return r
		}
		kind = FailedAPI
	case "error_max_turns", "error_max_budget_usd":
		kind = FailedLimit
	}
	r.Failure = &Failure{Kind: kind, Message: orElse(r.Text, v.str("error"), v.str("subtype"))}
	return r
}
