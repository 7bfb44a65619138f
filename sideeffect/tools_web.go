package sideeffect

import (
	"strings"
)

// webClients send requests to whomever.
func webClients() map[string]tool {
	return map[string]tool{
		"curl curlie":       {judge: judgeCurl},
		"wget wget2":        {judge: judgeWget},
		"http https xh xhs": {judge: judgeHTTPie},
		"grpcurl":           {judge: judgeGRPC},
		"websocat wscat":    {judge: alwaysMaybe},
		"hurl newman k6 ab wrk hey vegeta artillery": {judge: judgeLoad},
	}
}

func alwaysMaybe(a args) (finding, decision) { return maybe(a.tool) }

// judgeLoad: runners of requests send whatever their file says.
func judgeLoad(a args) (finding, decision) {
	if len(a.operands("")) == 0 {
		return nothing()
	}
	return maybe(a.tool)
}

const (
	// The letters of curl's options that take a value.
	curlValued = "AbcCdDeEFhHKmoPQrTtuUwxXyYz"
	curlLong   = `--request --data --data-ascii --data-raw --data-binary --data-urlencode --json --form --form-string --upload-file --header
		--user --user-agent --referer --cookie --cookie-jar --output --output-dir --url --max-time --connect-timeout --retry --retry-delay
		--retry-max-time --proxy --cacert --capath --cert --key --config --write-out --resolve --interface --range --limit-rate --quote
		--oauth2-bearer --mail-from --mail-rcpt --unix-socket --dump-header --ciphers --tls-max --connect-to --noproxy --url-query --variable`
)

// A curlRequest is what one of curl's requests is made of.
type curlRequest struct {
	method               string
	data, get, head      bool
	upload, mail, config bool
	urls                 []word
}

// judgeCurl reads the options as curl does: letters may be bundled, and the value
// may follow its letter.
func judgeCurl(a args) (finding, decision) {
	var q curlRequest
	most, d := finding{}, isNone
	for i := 0; i < len(a.words); i++ {
		w := a.words[i].text
		next := func() string {
			if i++; i < len(a.words) {
				return a.words[i].text
			}
			return ""
		}
		switch {
		case w == "--next" || w == "-:":
			if f, found := q.judge(a); found == isEffect {
				most, d = f, found
			}
			q = curlRequest{}
		case strings.HasPrefix(w, "--"):
			flag, value, attached := strings.Cut(w, "=")
			if !attached && hasWord(curlLong, flag) {
				value = next()
			}
			q.long(flag, value)
		case len(w) > 1 && w[0] == '-':
			q.letters(w[1:], next)
		default:
			q.urls = append(q.urls, a.words[i])
		}
	}
	if f, found := q.judge(a); found == isEffect {
		most, d = f, found
	}
	return most, d
}

func (q *curlRequest) long(flag, value string) {
	switch flag {
	case "--request":
		q.method = value
	case "--data", "--data-ascii", "--data-raw", "--data-binary", "--data-urlencode", "--json", "--form", "--form-string":
		q.data = true
	case "--upload-file":
		q.upload = true
	case "--get":
		q.get = true
	case "--head":
		q.head = true
	case "--mail-from", "--mail-rcpt":
		q.mail = true
	case "--config", "--quote":
		q.config = true
	case "--url":
		q.urls = append(q.urls, word{text: value})
	}
}

func (q *curlRequest) letters(bundle string, next func() string) {
	for j, c := range bundle {
		value := ""
		takes := strings.ContainsRune(curlValued, c)
		if takes {
			if value = bundle[j+len(string(c)):]; value == "" {
				value = next()
			}
		}
		switch c {
		case 'X':
			q.method = value
		case 'd', 'F':
			q.data = true
		case 'T':
			q.upload = true
		case 'G':
			q.get = true
		case 'I':
			q.head = true
		case 'K', 'Q':
			q.config = true
		}
		if takes {
			return
		}
	}
}

// notSent are the exit statuses of curl that mean that nothing left, or that the
// server said no.
var notSent = []int{1, 2, 3, 4, 5, 6, 7, 22, 27, 35, 43, 48, 53, 58, 59, 60, 77, 83, 90, 91}

func (q *curlRequest) judge(a args) (finding, decision) {
	f, d := q.byMethod(a)
	f.failed = notSent
	return f, d
}

func (q *curlRequest) byMethod(a args) (finding, decision) {
	for _, u := range q.urls {
		if scheme, _, ok := strings.Cut(strings.ToLower(u.text), "://"); ok && (scheme == "smtp" || scheme == "smtps") {
			q.mail = true
		}
	}
	switch {
	case q.mail:
		return finding{class: Write, rule: a.tool + " mail", undo: never("a mail can't be called back")}, isEffect
	case q.upload && q.method == "":
		return write(a.tool + " PUT")
	case q.method != "":
		return byMethod(a.tool, q.method)
	case q.get || q.head:
		return nothing()
	case q.data:
		return write(a.tool + " POST")
	case q.config || a.spread():
		return maybe(a.tool)
	}
	return nothing()
}

func judgeWget(a args) (finding, decision) {
	method, given := a.option("--method")
	switch {
	case given:
		return byMethod(a.tool, method)
	case a.has("--post-data", "--post-file", "--body-data", "--body-file"):
		return write(a.tool + " POST")
	case a.has("-i", "--input-file") || a.spread():
		return nothing() // addresses to get
	}
	return nothing()
}

// httpField is an item of a body: name=text, name:=json, name@file. Others are
// headers and parts of the query.
var httpField = pattern(`^[^=:@]+(=[^=]|=$|:=|@)`)

// judgeHTTPie: a method may come first; otherwise fields make it a POST.
func judgeHTTPie(a args) (finding, decision) {
	if a.has("--offline") {
		return nothing()
	}
	ops := a.operands(`-a --auth -A --auth-type -o --output -p --print -s --style --session --session-read-only --verify --cert --timeout
		--proxy --pretty --raw`)
	if len(ops) == 0 {
		return nothing()
	}
	if m := ops[0].text; m == strings.ToUpper(m) && strings.Trim(m, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" {
		return byMethod(a.tool, m)
	}
	if ops[0].unknown() && len(ops) > 1 {
		return maybe(a.tool)
	}
	for _, w := range ops[1:] {
		if httpField().MatchString(w.text) {
			return write(a.tool + " POST")
		}
	}
	if a.inv.stdin.given && !a.has("-I", "--ignore-stdin") || a.has("--raw") {
		return write(a.tool + " POST")
	}
	return nothing()
}

func judgeGRPC(a args) (finding, decision) {
	ops := a.operands("-d -H -rpc-header -reflect-header -proto -protoset -import-path -authority -cacert -cert -key -max-time -connect-timeout -format")
	if len(ops) < 2 || ops[1].text == "list" || ops[1].text == "describe" {
		return nothing()
	}
	method := ops[len(ops)-1].text
	method = method[strings.LastIndexAny(method, "/.")+1:]
	for _, prefix := range []string{"Get", "List", "Check", "Watch", "Describe", "Search", "Find", "Read"} {
		if strings.HasPrefix(method, prefix) {
			return nothing()
		}
	}
	return maybe("grpcurl")
}
