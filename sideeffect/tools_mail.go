package sideeffect

// mailers send what can't be called back.
func mailers() map[string]tool {
	sent := never("a mail can't be called back")
	said := never("a message can't be called back")
	return map[string]tool{
		"mail mailx s-nail":                    {judge: judgeMail},
		"mutt neomutt":                         {judge: judgeMail},
		"sendmail msmtp ssmtp swaks sendemail": {judge: always(sent)},
		"himalaya":                             {writes: []verb{{path: "message send", undo: sent}, {path: "send", undo: sent}, {path: "template send", undo: sent}}},
		"notify-send":                          {},
		"slack slackcat":                       {judge: always(said)},
		"ntfy":                                 {writes: []verb{{path: "publish", undo: said}, {path: "pub", undo: said}}},
	}
}

// judgeMail: without a recipient, mail is read.
func judgeMail(a args) (finding, decision) {
	if len(a.operands("-s -a -b -c -r -q -S -f -e -F -H -i")) == 0 {
		return nothing()
	}
	return finding{class: Write, rule: a.tool, undo: never("a mail can't be called back")}, isEffect
}
