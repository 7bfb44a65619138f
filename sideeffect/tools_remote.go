package sideeffect

import (
	"strings"
)

// remotes reach other machines.
func remotes() map[string]tool {
	return map[string]tool{
		"ssh autossh mosh":            {judge: judgeSSH, foreign: true},
		"sshpass":                     {judge: judgeSSHPass, foreign: true},
		"scp pscp":                    {judge: judgeSCP},
		"rsync":                       {judge: judgeRsync},
		"sftp lftp ftp":               {judge: judgeFTP},
		"ssh-copy-id":                 {judge: always(Compensation{})},
		"nc ncat netcat socat telnet": {judge: judgeNetcat},
		"restic borg duplicity": {reads: `snapshots, list, ls, find, stats, check, diff, dump, restore, cat, version, info, extract, mount, cache, status, verify`, rest: Write,
			valued: "-r --repo -p --password-file"},
	}
}

const sshValued = "-B -b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -P -Q -R -S -W -w"

func judgeSSH(a args) (finding, decision) {
	host := -1
	for i := 0; i < len(a.words); i++ {
		w := a.words[i].text
		if hasWord(sshValued, w) {
			i++
			continue
		}
		if !a.words[i].option() {
			host = i
			break
		}
	}
	switch {
	case host < 0 || a.has("-N", "-V", "-G", "-O", "-Q"):
		return nothing()
	case hasWord("github.com gitlab.com bitbucket.org", after(a.words[host].text, "@")):
		return nothing()
	}
	if host+1 == len(a.words) {
		if !a.inv.stdin.given {
			return maybe(a.tool) // a session that nobody can see into
		}
		return a.remotely(a.inv.stdin.text, a.inv.stdin.known)
	}
	return a.remotely(join(a.words[host+1:]), true)
}

// remotely: what only looks is nothing; the rest changes another machine.
func (a args) remotely(line string, known bool) (finding, decision) {
	switch {
	case known && a.harmless(line):
		return nothing()
	case !known || strings.ContainsRune(line, hole):
		return maybe(a.tool)
	}
	return write(a.tool)
}

func judgeSSHPass(a args) (finding, decision) {
	for i, w := range a.words {
		if t := toolNamed(program(w.text)); t != nil && t.judge != nil && w.text != "sshpass" {
			return t.judge(args{tool: program(w.text), words: a.words[i+1:], inv: a.inv})
		}
	}
	return nothing()
}

// away is a place on another machine: host:path, user@host:path, rsync://host/path.
var away = pattern(`^(?:\[[^\]]+\]|[^/:]+):|^[a-z]+://`)

func judgeSCP(a args) (finding, decision) {
	return judgeDestination(a, a.operands("-c -D -F -i -J -l -o -P -S -X"))
}

func judgeRsync(a args) (finding, decision) {
	for _, w := range a.words {
		if w.option() && !strings.HasPrefix(w.text, "--") && strings.Contains(w.text, "n") && !strings.HasPrefix(w.text, "-e") {
			return nothing()
		}
	}
	return judgeDestination(a, a.operands(`-e --rsh -f --filter --exclude --include --exclude-from --include-from --files-from --bwlimit --timeout --port
		--rsync-path --chmod --chown --log-file --backup-dir --suffix --password-file --max-size --min-size --info --compare-dest --link-dest -B -T -M`))
}

func judgeDestination(a args, ops []word) (finding, decision) {
	if len(ops) < 2 {
		return nothing()
	}
	switch to := ops[len(ops)-1]; {
	case away().MatchString(to.text):
		return write(a.tool)
	case to.unknown() && !strings.ContainsAny(to.text[:1], "./"):
		return maybe(a.tool)
	}
	return nothing()
}

func judgeFTP(a args) (finding, decision) {
	if len(a.operands("")) == 0 {
		return nothing()
	}
	return maybe(a.tool)
}

// judgeNetcat: with input, something is sent; without, it listens or looks.
func judgeNetcat(a args) (finding, decision) {
	if a.has("-z", "-l", "--listen") || !a.inv.stdin.given {
		return nothing()
	}
	for _, w := range a.words {
		if w.option() && !strings.HasPrefix(w.text, "--") && strings.ContainsAny(w.text, "zl") {
			return nothing()
		}
	}
	return maybe(a.tool)
}

// after is what follows the last separator, or all of s.
func after(s, separator string) string {
	return s[strings.LastIndex(s, separator)+1:]
}

// writesFile: a line puts something into a file.
func writesFile(line string) bool {
	file, err := parse(line)
	if err != nil {
		return true
	}
	return redirects(file)
}
