package redact

import (
	"path"
	"slices"
	"strings"
)

// flags finds what comes after the long flags of any program: --token value.
func flags(s string) (found []span) {
	for i := range every(s, "--") {
		if v, ok := flagValue(s, i); ok {
			found = append(found, v)
		}
	}
	return found
}

// flagValue finds the word after a --flag with the name of a secret. In the
// help of a program, what the flag does stands further off.
func flagValue(s string, i int) (span, bool) {
	if i > 0 && !is(s[i-1], space) && !isQuote(s[i-1]) {
		return span{}, false
	}
	from := i + len("--")
	name := s[from : from+run(s[from:], word|dash)]
	from += len(name)
	if !secretFlag(name) || from+1 >= len(s) || s[from] != ' ' {
		return span{}, false
	}
	w, _ := wordAt(s, from+1)
	return w, secretWord(s[w.from:w.to])
}

func secretFlag(name string) bool { return secretName(name) && !strings.HasPrefix(name, "no") }

// secretWord reports whether a word after a flag is its value, and not another
// flag, or the name of a value in a line of help.
func secretWord(value string) bool {
	return worthHiding(value) && value[0] != '-' && run(value, upper|underscore) < len(value)
}

// wordStops end a word that has no quotation marks around it.
const wordStops = " \t\r\n;|&()<>\"'`"

// wordAt finds the word at s[i], without the quotation marks around it, and
// where the text goes on. A mark in the middle, as in -p'secret', stays.
func wordAt(s string, i int) (w span, next int) {
	if open := quoteAt(s, i); open != "" {
		from := i + len(open)
		to := from + quoted(s[from:], open)
		return span{from: from, to: to}, min(len(s), to+len(open))
	}
	to := i + upTo(s[i:], wordStops)
	for to > i && s[to-1] == '\\' {
		to--
	}
	w = span{from: i, to: to}
	open := quoteAt(s, to)
	inner := to + len(open)
	if open == "" || to-i != len("-p") || s[i] != '-' || inner == len(s) || strings.IndexByte(wordStops+",", s[inner]) >= 0 {
		return w, max(to, i+1)
	}
	w.to = inner + quoted(s[inner:], open)
	return w, min(len(s), w.to+len(open))
}

// program takes a secret after a short flag.
type program struct {
	names    []string
	flag     string
	separate bool   // the next word is the secret
	attached bool   // the rest of the word is
	sub      string // only with this subcommand
	user     bool   // user:password, of which the first part is none
}

var programs = []program{
	{names: []string{"mysql", "mysqldump", "mysqladmin", "mysqlimport", "mariadb", "mariadb-dump"}, flag: "-p", attached: true},
	{names: []string{"sshpass"}, flag: "-p", attached: true, separate: true},
	{names: []string{"7z", "7za"}, flag: "-p", attached: true},
	{names: []string{"unzip", "zip", "sqlcmd"}, flag: "-P", separate: true},
	{names: []string{"redis-cli"}, flag: "-a", separate: true},
	{names: []string{"ldapsearch", "ldapmodify", "ldapadd"}, flag: "-w", separate: true},
	{names: []string{"mongo", "mongosh", "mongodump", "mongorestore"}, flag: "-p", separate: true},
	{names: []string{"docker", "podman", "helm", "az", "oc"}, flag: "-p", separate: true, sub: "login"},
	{names: []string{"curl"}, flag: "-u", separate: true, attached: true, user: true},
	{names: []string{"curl"}, flag: "--user", separate: true, user: true},
	{names: []string{"curl"}, flag: "--proxy-user", separate: true, user: true},
}

// programsBy holds programs by their names, and longestOf how long a name can
// be that begins with a byte.
var programsBy, longestOf = func() (by map[string][]program, longest [256]int) {
	by = map[string][]program{}
	for _, p := range programs {
		for _, name := range p.names {
			by[name] = append(by[name], p)
			longest[name[0]] = max(longest[name[0]], len(name))
		}
	}
	return by, longest
}()

// commands finds what comes after the short flags of well-known programs.
func commands(s string) (found []span) {
	past := map[string]int{} // where the last command of a name ends
	for i := range len(s) {
		longest := longestOf[s[i]]
		if longest == 0 || i > 0 && is(s[i-1], word|dash|dot) {
			continue
		}
		name := s[i : i+run(s[i:min(len(s), i+longest+1)], word|dash)]
		end := i + len(name)
		if programsBy[name] == nil || i < past[name] || end == len(s) || !is(s[end], blank) {
			continue
		}
		words, end := commandWords(s, i)
		past[name] = end
		for _, h := range secretWords(texts(s, words)) {
			found = append(found, span{from: words[h.word].from + h.from, to: words[h.word].to})
		}
	}
	return found
}

// secretWords finds the secrets of a command by its name, the first word.
func secretWords(words []string) (found []hit) {
	for _, p := range programsBy[path.Base(words[0])] {
		found = append(found, p.secrets(words)...)
	}
	return found
}

// hit is the part of a word, from a byte to its end, that is secret.
type hit struct{ word, from int }

// secrets finds the secret words of a command, whose first word is its name.
func (p program) secrets(words []string) (found []hit) {
	if p.sub != "" && !slices.Contains(words, p.sub) {
		return nil
	}
	for i := 1; i < len(words); i++ {
		rest, ok := strings.CutPrefix(words[i], p.flag)
		h := hit{word: i, from: len(p.flag)}
		switch {
		case !ok:
			continue
		case rest == "" && p.separate && i+1 < len(words):
			h, rest = hit{word: i + 1}, words[i+1]
		case rest == "" || !p.attached:
			continue
		}
		if mark := quoteAt(rest, 0); mark != "" {
			h.from, rest = h.from+len(mark), rest[len(mark):]
		}
		if p.user {
			user, password, ok := strings.Cut(rest, ":")
			if !ok {
				continue
			}
			h.from, rest = h.from+len(user)+1, password
		}
		if worthHiding(rest) && rest[0] != '-' {
			found = append(found, h)
		}
	}
	return found
}

// commandWords splits the simple command at s[i] into words, and tells where it
// ends.
func commandWords(s string, i int) (words []span, end int) {
	for {
		i += run(s[i:], blank)
		if strings.HasPrefix(s[i:], "\\\n") {
			i += len("\\\n")
			continue
		}
		if i == len(s) || strings.IndexByte("\r\n;|&()", s[i]) >= 0 {
			return words, i
		}
		var w span
		if w, i = wordAt(s, i); w.to > w.from {
			words = append(words, w)
		}
	}
}

func texts(s string, words []span) []string {
	var out []string
	for _, w := range words {
		out = append(out, s[w.from:w.to])
	}
	return out
}
