package sideeffect

// services run on this machine, beside the worktree.
func services() map[string]tool {
	return map[string]tool{
		"systemctl": {valued: "-H --host -M --machine -n --lines -o --output -p --property -t --type --state -s --signal",
			reads: `status, show, cat, help, list-units, list-unit-files, list-sockets, list-timers, list-jobs, list-dependencies, list-machines,
				is-active, is-enabled, is-failed, is-system-running, get-default, show-environment`,
			rest: Write},
		"service":                              {judge: judgeService},
		"rc-service initctl supervisorctl pm2": {reads: "status, list, ls, logs, monit, show, describe, tail, avail, jlist, version, help", rest: Write},
		"launchctl":                            {reads: "list, print, print-disabled, blame, managername, help, version, getenv", rest: Write},
		"crontab":                              {judge: judgeCrontab},
		"at batch":                             {judge: always(Compensation{})},
		"shutdown reboot poweroff halt":        {judge: always(never("what is off is off"))},
	}
}

func judgeService(a args) (finding, decision) {
	ops := a.operands("")
	if len(ops) < 2 || ops[1].text == "status" {
		return nothing()
	}
	return write("service " + ops[1].text)
}

func judgeCrontab(a args) (finding, decision) {
	if a.has("-l") || len(a.words) == 0 && !a.inv.stdin.given {
		return nothing()
	}
	return write("crontab")
}
