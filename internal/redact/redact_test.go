package redact_test

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/internal/redact"
)

// The credentials of these tests are put together here, so that no scanner
// takes the file for a leak.
var (
	github = "ghp_" + strings.Repeat("a1B2", 9)
	aws    = "AKIA" + "IOSFODNN7EXAMPLE"
	jwt    = "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0In0" + ".dozjgNryP4J3jVmNHl0w5N"
	pem    = "-----BEGIN RSA PRIVATE" + " KEY-----\nMIIEowIBAAKCAQEAy8Dbv8prpJ/0kKhlGeJYozo2t60EG8L0561g13R29LvMR5hy\n-----END RSA PRIVATE" + " KEY-----"
)

func TestTextByForm(t *testing.T) {
	for _, test := range []struct{ name, in, want string }{
		{"github", "push with " + github + ".", "push with [redacted:github-token]."},
		{"github, fine-grained", "github_pat_" + strings.Repeat("11AB_", 10), "[redacted:github-token]"},
		{"gitlab", "x=glpat-" + strings.Repeat("a-1_", 5), "x=[redacted:gitlab-token]"},
		{"slack", "xoxb-" + "123456789012-abcdef", "[redacted:slack-token]"},
		{"slack, a hook", "https://hooks.slack.com/services/" + "T00000000/B00000000/XXXXXXXXXXXX", "https://hooks.slack.com/services/[redacted:slack-webhook]"},
		{"npm", "npm_" + strings.Repeat("x9", 18), "[redacted:npm-token]"},
		{"pypi", "pypi-" + strings.Repeat("AgEI", 15), "[redacted:pypi-token]"},
		{"openai", "sk-" + strings.Repeat("Ab3d", 12), "[redacted:openai-key]"},
		{"openai, of a project", "sk-proj-" + strings.Repeat("Ab-_", 12), "[redacted:openai-key]"},
		{"anthropic", "key sk-ant-api03-" + strings.Repeat("Ab-_", 12) + "\n", "key [redacted:anthropic-key]\n"},
		{"google", "AIza" + strings.Repeat("Sy_-x", 7), "[redacted:google-key]"},
		{"aws", "id " + aws + ",", "id [redacted:aws-key],"},
		{"a longer word of capitals", aws + "AND", aws + "AND"},
		{"in the middle of a word", "x" + github, "x" + github},
		{"a class that begins like a key", "sk-loading-spinner-container-large-and-wide", "sk-loading-spinner-container-large-and-wide"},
		{"azure", "?sv=1&sig=" + strings.Repeat("aB3%2", 10) + "&x", "?sv=1&sig=[redacted:azure-signature]&x"},
		{"jwt", "got " + jwt + " back", "got [redacted:jwt] back"},
		{"an encoded object that is no token", "eyJhbGciOiJIUzI1NiJ9 and so on", "eyJhbGciOiJIUzI1NiJ9 and so on"},
		{"private key", "a\n" + pem + "\nb", "a\n[redacted:private-key]\nb"},
		{"private key, two", pem + "\n" + pem, "[redacted:private-key]\n[redacted:private-key]"},
		{"private key, in a piece of JSON", `{"k": "` + strings.ReplaceAll(pem, "\n", `\n`) + `", …`, `{"k": "[redacted:private-key]", …`},
		{"private key, cut off", pem[:90], "[redacted:private-key]"},
		{"private key, its end cut off", pem[:len(pem)-3] + "\nand on", "[redacted:private-key]\nand on"},
		{"private key, its end cut short", pem[:len(pem)-9], "[redacted:private-key]"},
		{"private key, only spoken of", `grep "-----BEGIN PRIVATE` + ` KEY-----" *`, `grep "-----BEGIN PRIVATE` + ` KEY-----" *`},
		{"public key", strings.ReplaceAll(pem, "PRIVATE", "PUBLIC"), strings.ReplaceAll(pem, "PRIVATE", "PUBLIC")},
		{"URL", "git clone https://me:hunter2@example.com/a", "git clone https://me:[redacted]@example.com/a"},
		{"URL, no user", "redis://:hunter2@localhost:6379/0", "redis://:[redacted]@localhost:6379/0"},
		{"URL, an @ in the password", "postgres://u:p@ss@db/x", "postgres://u:[redacted]@db/x"},
		{"URL, a user alone", "ssh://git@example.com/a", "ssh://git@example.com/a"},
		{"URL, a port", "http://localhost:8080/@x", "http://localhost:8080/@x"},
		{"URL, a variable", "https://me:${PASS}@example.com", "https://me:${PASS}@example.com"},
		{"bearer", "say Bearer abcdef0123456789abcdef", "say Bearer [redacted]"},
		{"bearer, a word", "the bearer misunderstandings-and-more", "the bearer misunderstandings-and-more"},
	} {
		t.Run(test.name, func(t *testing.T) { check(t, redact.New(), test.in, test.want) })
	}
}

func TestTextByName(t *testing.T) {
	for _, test := range []struct{ name, in, want string }{
		{"environment", "export DB_PASSWORD=hunter2; ls", "export DB_PASSWORD=[redacted]; ls"},
		{"environment, one word", "PGPASSWORD=hunter2 psql", "PGPASSWORD=[redacted] psql"},
		{"environment, with a comma", "API_TOKEN=a,b c", "API_TOKEN=[redacted] c"},
		{"environment, quoted", `TOKEN='a b' TOKEN="c d" X=1`, `TOKEN='[redacted]' TOKEN="[redacted]" X=1`},
		{"environment, of a known kind", "GITHUB_TOKEN=" + github, "GITHUB_TOKEN=[redacted:github-token]"},
		{"a variable", "PASSWORD=$DB_PASS TOKEN=${T} SECRET=$(cat x)", "PASSWORD=$DB_PASS TOKEN=${T} SECRET=$(cat x)"},
		{"a variable's look only", "PASSWORD=$ecret1", "PASSWORD=[redacted]"},
		{"flag", "x --db-password=hunter2 --token abc123 y", "x --db-password=[redacted] --token [redacted] y"},
		{"flag, quoted", `x --token "a b"`, `x --token "[redacted]"`},
		{"flag, cut off", `x --token "a b`, `x --token "[redacted]`},
		{"flag, in help", "--token string  the token\n--token TOKEN\n--no-password never", "--token string  the token\n--token TOKEN\n--no-password never"},
		{"flag, before another", "x --password --verbose", "x --password --verbose"},
		{"flag, from stdin", "docker login --password-stdin registry", "docker login --password-stdin registry"},
		{"query", "GET /?access_token=abc&b=1", "GET /?access_token=[redacted]&b=1"},
		{"connection string", "Server=a,password=b,c=d;AccountKey=e/f==;x", "Server=a,password=[redacted],c=d;AccountKey=[redacted];x"},
		{".npmrc", "//registry.npmjs.org/:_authToken=abc\n_auth=ZGY=", "//registry.npmjs.org/:_authToken=[redacted]\n_auth=[redacted]"},
		{"yaml", "a:\n  password: hunter2 # old\n  token: x\n", "a:\n  password: [redacted] # old\n  token: [redacted]\n"},
		{"ini", "aws_secret_access_key = abc/def+g\r\n", "aws_secret_access_key = [redacted]\r\n"},
		{"go", `token := "abc"`, `token := "[redacted]"`},
		{"ruby", `'api_key' => 'abc'`, `'api_key' => '[redacted]'`},
		{"python", `os.environ["API_KEY"] = 'abc'`, `os.environ["API_KEY"] = '[redacted]'`},
		{"javascript", `{apiKey: "abc", n: 1}`, `{apiKey: "[redacted]", n: 1}`},
		{"make", "TOKEN ?= abc", "TOKEN ?= [redacted]"},
		{"header", "Authorization: Basic dTpw\r\nAccept: x", "Authorization: [redacted]\r\nAccept: x"},
		{"header, to curl", `curl -H "Authorization: token abc" -H 'X-Api-Key:def' -b x`, `curl -H "Authorization: [redacted]" -H 'X-Api-Key:[redacted]' -b x`},
		{"header, cookies", "Set-Cookie: a=b; Path=/\nx", "Set-Cookie: [redacted]\nx"},
		{"header, a variable", `curl -H "Authorization: Bearer $TOKEN"`, `curl -H "Authorization: Bearer $TOKEN"`},
		{"a piece of JSON", `… "password": "a\"b", "pin_token": 1234, "n": 1`, `… "password": "[redacted]", "pin_token": "[redacted]", "n": 1`},
		{"a piece of JSON in JSON", `… {\"token\": \"abc\", \"n\": 1}`, `… {\"token\": \"[redacted]\", \"n\": 1}`},
		{"a piece of JSON in quotes, cut off", `"{\"token\": \"abc" next`, `"{\"token\": \"[redacted]" next`},
		{"mysql, in a container", "docker exec db mysql -phunter2", "docker exec db mysql -p[redacted]"},
		{"mysql", "mysql -u root -phunter2 db", "mysql -u root -p[redacted] db"},
		{"mysql, quoted", "mysql -p'hunter 2' db -p", "mysql -p'[redacted]' db -p"},
		{"mysql, in a shell", `sh -c "mysql -uroot -phunter2" -px`, `sh -c "mysql -uroot -p[redacted]" -px`},
		{"mysql, several", "mysql -pa; cat x | mysqldump -pb", "mysql -p[redacted]; cat x | mysqldump -p[redacted]"},
		{"a port", "docker run -p 80:80 nginx", "docker run -p 80:80 nginx"},
		{"docker login", "docker login -u me -p hunter2 host", "docker login -u me -p [redacted] host"},
		{"curl", "curl -sS -u me:hunter2 https://x", "curl -sS -u me:[redacted] https://x"},
		{"curl, quoted", `curl --user "me:hunter2" https://x`, `curl --user "me:[redacted]" https://x`},
		{"curl, no password", "curl -u me https://x", "curl -u me https://x"},

		{"counting", "max_tokens=12 prompt_tokens: 5", "max_tokens=12 prompt_tokens: 5"},
		{"paging", "nextPageToken=abc", "nextPageToken=abc"},
		{"comparing", "if token == x || secret != y", "if token == x || secret != y"},
		{"calling", "token=getToken(x), password = input()", "token=getToken(x), password = input()"},
		{"declaring", "password: string;\ntoken: String,\nsecret: str", "password: string;\ntoken: String,\nsecret: str"},
		{"a path in code", "token::new", "token::new"},
		{"saying", "the token: it is not here\ninvalid password: too short", "the token: it is not here\ninvalid password: too short"},
		{"working directory", "PWD=/home/me", "PWD=/home/me"},
		{"stars", "password=****", "password=****"},
		{"commit", "commit 5eb7cb7f1f0c1a7b0a3f2d6f0e9a8b7c6d5e4f3a", "commit 5eb7cb7f1f0c1a7b0a3f2d6f0e9a8b7c6d5e4f3a"},
	} {
		t.Run(test.name, func(t *testing.T) { check(t, redact.New(), test.in, test.want) })
	}
}

func TestTextByValue(t *testing.T) {
	for _, test := range []struct{ name, secret, in, want string }{
		{"as it is", "hunter2", "a hunter2b", "a [redacted]b"},
		{"spaces around it", " hunter2\n", "ahunter2", "a[redacted]"},
		{"escaped", "a\"b\\c\n1", `x \"a\"b a\"b\\c\n1 y`, `x \"a\"b [redacted] y`},
		{"escaped twice", `a"bc`, `a\\\"bc`, `[redacted]`},
		{"escaped for HTML", "a<b&c", `a\u003cb\u0026c`, "[redacted]"},
		{"escaped to ASCII", "pässwörd😀", `p\u00e4ssw\u00f6rd\ud83d\ude00`, "[redacted]"},
		{"escaped slashes", "a/b/c", `a\/b\/c`, "[redacted]"},
		{"in a URL", "a b/c&", "?x=a+b%2Fc%26", "?x=[redacted]"},
		{"in base64", "hunter2!!", "aHVudGVyMiEh", "[redacted]"},
		{"a number", "81726354", "pin 81726354.", "pin [redacted]."},
		{"too short", "abc", "abc YWJj", "abc YWJj"},
		{"a number too short", "12", "[12]", "[12]"},
		{"as the document writes it", `ab\ncd`, `["x ab\ncd"]`, `["[redacted]"]`},
		{"a part of the marker", "redacted", "redacted", "redacted"},
		{"a part of a marker's kind", "github", github, "[redacted]"},
		{"made by markers", "x[redact", "xx[redactx[redacted]", "[redacted]ed][redacted]ed]"},
		{"made by markers without end", "x[redacted]", strings.Repeat("x", 10) + "[redacted] y", "[redacted]"},
		{"over lines of JSON", "1}\n{2", "{\"a\":1}\n{2", "{\"a\":[redacted]"},
	} {
		t.Run(test.name, func(t *testing.T) { check(t, redact.New(test.secret), test.in, test.want) })
	}
	check(t, redact.New("abcd", "cdef"), "abcdef abcdxcdef", "[redacted] [redacted]x[redacted]")
}

func TestJSON(t *testing.T) {
	r := redact.New("hunter2", "81726354", `se"cret`, `{"type":"x","id":1}`)
	for _, test := range []struct{ name, in, want string }{
		{"names", `{"password":"a","apiKey":"b","API-KEY":"c","x_api_key":"d","credential":"e","CLIENT_SECRETS":"f","n":"g"}`,
			`{"password":"[redacted]","apiKey":"[redacted]","API-KEY":"[redacted]","x_api_key":"[redacted]","credential":"[redacted]","CLIENT_SECRETS":"[redacted]","n":"g"}`},
		{"whatever the type", `{"secret":1,"secrets":[1,{"a":2}],"token":true,"cookies":{"a":"b"}}`,
			`{"secret":"[redacted]","secrets":"[redacted]","token":"[redacted]","cookies":"[redacted]"}`},
		{"nothing to hide", `{"password":"","token":null,"secret":"[redacted:jwt]"}`, `{"password":"","token":null,"secret":"[redacted:jwt]"}`},
		{"the kind is kept", `{"token":"` + github + `"}`, `{"token":"[redacted:github-token]"}`},
		{"layout and order", "{\n  \"z\": 1.0,\n  \"token\" : \"a\",\n  \"a\": [ ]\n}\n", "{\n  \"z\": 1.0,\n  \"token\" : \"[redacted]\",\n  \"a\": [ ]\n}\n"},
		{"a text that is not one", `{"pass":3,"auth":{"user":"a","pass":"b"}}`, `{"pass":3,"auth":{"user":"a","pass":"[redacted]"}}`},
		{"deep in a string", `["run with DB_PASSWORD=x now"]`, `["run with DB_PASSWORD=[redacted] now"]`},
		{"JSON in JSON", `{"body":"{\"token\":{\"a\":1},\"n\":2}"}`, `{"body":"{\"token\":\"[redacted]\",\"n\":2}"}`},
		{"exact", `{"a":"x hunter2","hunter2":1}`, `{"a":"x [redacted]","[redacted]":1}`},
		{"exact, escaped", `["se\"cret","se\u0022cret"]`, `["[redacted]","[redacted]"]`},
		{"numbers", `[81726354,-81726354,8.1726354e7,817263540e-1,9817263541,81726355]`,
			`["[redacted]","[redacted]","[redacted]","[redacted]","[redacted]",81726355]`},
		{"numbers in text", `["81726354","a 81726354",{"81726354":1}]`, `["[redacted]","a [redacted]",{"[redacted]":1}]`},
		{"a number alone", "81726354\n", "\"[redacted]\"\n"},
		{"keys that become the same", `{"hunter2":1,"` + github + `":2,"` + github + `x":3,"[redacted]":4,"hunter2 ":5}`,
			`{"[redacted]#2":1,"[redacted:github-token]":2,"[redacted:github-token]#2":3,"[redacted]":4,"[redacted] ":5}`},
		{"one key twice", `{"a":"` + github + `","a":1}`, `{"a":"[redacted:github-token]","a":1}`},
		{"a secret that is JSON", `{"file":{"type":"x","id":1},"n":1}`, `{"file":"[redacted]","n":1}`},
		{"a named value", `[{"name":"DB_PASSWORD","value":"x"},{"value":"y","key":"Cookie"},{"name":"n","value":"z"}]`,
			`[{"name":"DB_PASSWORD","value":"[redacted]"},{"value":"[redacted]","key":"Cookie"},{"name":"n","value":"z"}]`},
		{"words", `["x","--token","abc1","--password","--quiet","y"]`, `["x","--token","[redacted]","--password","--quiet","y"]`},
		{"words of mysql, redacted", `["mysql","-p[redacted:jwt]"]`, `["mysql","-p[redacted:jwt]"]`},
		{"words of mysql, in a container", `["docker","exec","db","mysql","-pabc"]`, `["docker","exec","db","mysql","-p[redacted]"]`},
		{"words of mysql", `["/usr/bin/mysql","-pabc","-u","-p"]`, `["/usr/bin/mysql","-p[redacted]","-u","-p"]`},
		{"lines", "{\"token\":\"a\"}\nplain TOKEN=b\n[{\"secret\":1}]\n{", "{\"token\":\"[redacted]\"}\nplain TOKEN=[redacted]\n[{\"secret\":\"[redacted]\"}]\n{"},
	} {
		t.Run(test.name, func(t *testing.T) { check(t, r, test.in, test.want) })
	}
	_, _, err := r.JSON([]byte(`{"a":`))
	require.Error(t, err)
	out, changed, err := r.JSON([]byte(`["hunter2"]`))
	require.NoError(t, err)
	assert.True(t, changed)
	assert.Equal(t, `["[redacted]"]`, string(out))
}

func TestValue(t *testing.T) {
	r := redact.New("hunter2", "81726354", "bad\xff\xfebytes")
	type arguments struct {
		Command string `json:"command"`
		Token   string `json:"token"`
	}
	for _, test := range []struct {
		name     string
		in, want any
	}{
		{"nothing", nil, nil},
		{"unchanged as it came", map[string]any{"n": 1, "s": []byte("x")}, map[string]any{"n": 1, "s": []byte("x")}},
		{"string", "hunter2", "[redacted]"},
		{"string of digits", "81726354", "[redacted]"},
		{"bytes", []byte("hunter2"), []byte("[redacted]")},
		{"document", json.RawMessage(`{"token":1}`), json.RawMessage(`{"token":"[redacted]"}`)},
		{"no document", json.RawMessage(`{`), "[redacted]"},
		{"float", 81726354.0, "[redacted]"},
		{"integer", map[string]any{"n": int64(81726354), "m": 1.5}, map[string]any{"n": "[redacted]", "m": json.Number("1.5")}},
		{"number", json.Number("81726354.0"), "[redacted]"},
		{"big number", []any{json.Number("123456789012345678901234567890"), "hunter2"}, []any{json.Number("123456789012345678901234567890"), "[redacted]"}},
		{"struct", arguments{"ls", "x"}, map[string]any{"command": "ls", "token": "[redacted]"}},
		{"map of strings", map[string]string{"token": "x"}, map[string]any{"token": "[redacted]"}},
		{"bytes that are no text", []any{"a bad\xff\xfebytes"}, []any{"a [redacted]"}},
		{"what JSON can't hold", []any{func() {}}, "[redacted]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, changed := r.Value(test.in)
			assert.Equal(t, test.want, got)
			assert.Equal(t, !assert.ObjectsAreEqual(test.in, test.want), changed)
			again, changed := r.Value(got)
			assert.Equal(t, got, again)
			assert.False(t, changed, "redacted twice")
		})
	}
}

// Redacting is linear: twenty times the text takes nowhere near four hundred
// times as long.
func TestTimeIsLinear(t *testing.T) {
	r := redact.New("hunter2", "81726354")
	for name, part := range map[string]string{
		"text":          "a line of text: with = signs and \"quotes\"\n",
		"begins":        "-----BEGIN PRIVATE" + " KEY-----",
		"prefixes":      "sk-ant-glpat-xoxb-eyJ",
		"names":         "password: token: secret: ",
		"headers":       "x-api-key: ${",
		"open quotes":   `password="${ token='${ `,
		"programs":      "mysql curl docker ",
		"URLs":          "a://b:c",
		"slashes":       `\\`,
		"secrets":       "hunter2",
		"escaped":       `{\"token\":\"`,
		"lines of JSON": "{\"hunter2\":[\"hunter2\"]}\n",
		"spaces":        "password:          ",
		"flags":         "--token ",
		"words":         `"mysql",`,
	} {
		t.Run(name, func(t *testing.T) {
			took := func(n, times int) time.Duration {
				text := strings.Repeat(part, n)
				if name == "words" {
					text = "[" + text + "0]"
				}
				start := processorTime(t)
				for range times {
					r.Text(text)
				}
				return processorTime(t) - start
			}
			for range 8 { // the collector works on the side
				if short, long := took(500, 20), took(10000, 1); long < 4*short {
					return
				}
			}
			t.Error("20 times the text takes more than 80 times as long")
		})
	}
}

// processorTime is what the process has used: on a busy machine, the clock
// tells little.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func check(t *testing.T, r *redact.Redactor, in, want string) {
	t.Helper()
	got, changed := r.Text(in)
	assert.Equal(t, want, got)
	assert.Equal(t, in != want, changed)
	again, changed := r.Text(got)
	assert.Equal(t, got, again, "redacted twice")
	assert.False(t, changed, "redacted twice")
	assert.Equal(t, json.Valid([]byte(in)), json.Valid([]byte(got)), "JSON stays JSON")
}
