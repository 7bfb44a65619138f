package agent

var openCodeHeadless = headless{
	command: func(o RunOptions) (Invocation, error) {
		argv := []string{"run", "--format", "json"}
		if o.Model != "" {
			argv = append(argv, "--model", o.Model)
		}
		if o.Session != "" {
			argv = append(argv, "--session", o.Session)
		}
		if o.Session != "" && o.Fork {
			argv = append(argv, "--fork")
		}
		switch o.Mode {
		case Plan:
			argv = append(argv, "--agent", "plan")
		case All:
			argv = append(argv, "--auto")
		}
		return Invocation{Argv: append(argv, o.Extra...), Stdin: asked(o)}, nil
	},
	result: func(values []object) (r Result) {
		message := ""
		for _, v := range values {
			part := v.sub("part")
			r.Session = orElse(v.str("sessionID"), r.Session)
			switch v.str("type") {
			case "text":
				if m := part.str("messageID"); m != message {
					message, r.Text = m, ""
				}
				r.Text += part.str("text")
			case "step_finish":
				tokens, cache := part.sub("tokens"), part.sub("tokens").sub("cache")
				r.Usage.InputTokens += int64(tokens.number("input") + cache.number("read") + cache.number("write"))
				r.Usage.OutputTokens += int64(tokens.number("output") + tokens.number("reasoning"))
				r.Usage.CostUSD += part.number("cost")
			case "error":
				e := v.sub("error")
				r.Failure = &Failure{Kind: FailedAPI, Message: orElse(e.sub("data").str("message"), e.str("name"))}
			}
		}
		return r
	},
}
