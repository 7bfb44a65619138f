package redact

import "strings"

// form is how the credentials of one issuer look.
type form struct {
	prefix string
	rest   class
	least  int // of rest
	kind   string
}

// forms hold only credentials that say what they are. A prefix that also
// begins ordinary words has a rest that is long, and has no hyphens.
var forms = []form{
	{"AKIA", upper | digit, 16, "aws-key"},
	{"ASIA", upper | digit, 16, "aws-key"},
	{"ABIA", upper | digit, 16, "aws-key"},
	{"ACCA", upper | digit, 16, "aws-key"},
	{"ghp_", alnum, 20, "github-token"},
	{"gho_", alnum, 20, "github-token"},
	{"ghu_", alnum, 20, "github-token"},
	{"ghs_", alnum, 20, "github-token"},
	{"ghr_", alnum, 20, "github-token"},
	{"github_pat_", word, 20, "github-token"},
	{"glpat-", url64, 20, "gitlab-token"},
	{"gldt-", url64, 20, "gitlab-token"},
	{"glrt-", url64, 20, "gitlab-token"},
	{"glcbt-", url64, 20, "gitlab-token"},
	{"glptt-", url64, 20, "gitlab-token"},
	{"gloas-", url64, 20, "gitlab-token"},
	{"glsoat-", url64, 20, "gitlab-token"},
	{"glft-", url64, 20, "gitlab-token"},
	{"glagent-", url64, 20, "gitlab-token"},
	{"xoxb-", alnum | dash, 10, "slack-token"},
	{"xoxp-", alnum | dash, 10, "slack-token"},
	{"xoxa-", alnum | dash, 10, "slack-token"},
	{"xoxo-", alnum | dash, 10, "slack-token"},
	{"xoxr-", alnum | dash, 10, "slack-token"},
	{"xoxs-", alnum | dash, 10, "slack-token"},
	{"xoxc-", alnum | dash, 10, "slack-token"},
	{"xoxd-", alnum | dash, 10, "slack-token"},
	{"xoxe-", alnum | dash, 10, "slack-token"},
	{"xoxe.", alnum | dash | dot, 10, "slack-token"},
	{"xapp-", alnum | dash, 10, "slack-token"},
	{"hooks.slack.com/services/", alnum | slash, 20, "slack-webhook"},
	{"npm_", alnum, 30, "npm-token"},
	{"pypi-", url64, 50, "pypi-token"},
	{"sk-ant-", url64, 20, "anthropic-key"},
	{"sk-proj-", url64, 20, "openai-key"},
	{"sk-svcacct-", url64, 20, "openai-key"},
	{"sk-admin-", url64, 20, "openai-key"},
	{"sk-or-v1-", alnum, 32, "openrouter-key"},
	{"sk-", alnum, 32, "openai-key"},
	{"AIza", url64, 35, "google-key"},
	{"GOCSPX-", url64, 20, "google-key"},
	{"ya29.", url64 | dot, 20, "google-token"},
	{"1//0", url64, 30, "google-token"},
	{"sk_live_", alnum, 16, "stripe-key"},
	{"rk_live_", alnum, 16, "stripe-key"},
	{"sk_test_", alnum, 16, "stripe-key"},
	{"rk_test_", alnum, 16, "stripe-key"},
	{"whsec_", base64 | equals, 24, "stripe-key"},
	{"SG.", url64 | dot, 40, "sendgrid-key"},
	{"hf_", alnum, 30, "huggingface-token"},
	{"dop_v1_", alnum, 40, "digitalocean-token"},
	{"doo_v1_", alnum, 40, "digitalocean-token"},
	{"dckr_pat_", url64, 20, "docker-token"},
	{"dapi", lower | digit, 32, "databricks-token"},
	{"shpat_", alnum, 32, "shopify-token"},
	{"sb_secret_", url64, 20, "supabase-key"},
	{"sbp_", alnum, 40, "supabase-key"},
	{"lin_api_", alnum, 30, "linear-key"},
	{"ntn_", alnum, 40, "notion-token"},
	{"hvs.", url64, 24, "vault-token"},
	{"gsk_", alnum, 40, "groq-key"},
	{"xai-", alnum, 60, "xai-key"},
	{"rubygems_", lower | digit, 40, "rubygems-key"},
	{"pscale_tkn_", url64, 30, "planetscale-token"},
	{"dp.pt.", alnum, 40, "doppler-token"},
	{"PMAK-", alnum | dash, 50, "postman-key"},
	{"AGE-SECRET-KEY-1", upper | digit, 50, "age-key"},
	{"&sig=", alnum | plus | slash | equals | percent, 40, "azure-signature"},
	{"?sig=", alnum | plus | slash | equals | percent, 40, "azure-signature"},
}

// formsBy holds forms by the first byte of their prefix.
var formsBy = func() (by [256][]form) {
	for _, f := range forms {
		by[f.prefix[0]] = append(by[f.prefix[0]], f)
	}
	return by
}()

// tokens finds well-known credentials.
func tokens(s string) (found []span) {
	for i := 0; i < len(s); i++ {
		of := formsBy[s[i]]
		if of == nil || is(s[i], word) && !boundary(s, i) {
			continue
		}
		for _, f := range of {
			if v, ok := f.at(s, i); ok {
				found = append(found, v)
				i = v.to - 1
				break
			}
		}
	}
	return found
}

// at finds a credential of this form that begins at s[i].
func (f form) at(s string, i int) (span, bool) {
	if !strings.HasPrefix(s[i:], f.prefix) {
		return span{}, false
	}
	v := span{from: i, to: i + len(f.prefix), kind: f.kind}
	if strings.HasSuffix(f.prefix, "/") || strings.HasSuffix(f.prefix, "=") {
		v.from = v.to // the prefix tells nothing
	}
	n := run(s[v.to:], f.rest)
	v.to += n
	return v, n == f.least || n > f.least && f.kind != "aws-key" // which is not the beginning of a word
}

// every is where a part occurs in s, without overlaps.
func every(s, part string) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for from := 0; ; {
			i := strings.Index(s[from:], part)
			if i < 0 || !yield(from+i) {
				return
			}
			from += i + len(part)
		}
	}
}

// webTokens finds JSON web tokens: three parts or five with dots between, of
// which the first is an object.
func webTokens(s string) (found []span) {
	past := 0
	for i := range every(s, "eyJ") {
		if i < past || !boundary(s, i) {
			continue
		}
		end, parts := i+run(s[i:], url64), 1
		if end-i < 12 {
			past = end
			continue
		}
		for parts < 5 && end < len(s) && s[end] == '.' {
			end += 1 + run(s[end+1:], url64)
			parts++
		}
		past = end
		if parts >= 3 {
			found = append(found, span{from: i, to: end, kind: "jwt"})
		}
	}
	return found
}

const (
	pemBegin = "-----BEGIN "
	pemEnd   = "-----END "
)

// privateKeys finds PEM blocks that hold private keys, and the beginning of
// one that was cut off.
func privateKeys(s string) (found []span) {
	end := 0 // of the key, where the END line sought last begins; -1 when there is no more
	for i := range every(s, pemBegin) {
		label, _, ok := strings.Cut(s[i+len(pemBegin):min(len(s), i+80)], "-----")
		if !ok || !strings.Contains(label, "PRIVATE KEY") {
			continue
		}
		from := i + len(pemBegin) + len(label) + len("-----")
		if end >= 0 && end < from {
			if n := strings.Index(s[from:], pemEnd); n >= 0 {
				end = from + n
			} else {
				end = -1
			}
		}
		if end > 0 && !strings.Contains(s[from:end], pemBegin) {
			to := end + len(pemEnd)
			to += run(s[to:], upper|digit|blank)
			to += min(run(s[to:], dash), len("-----"))
			found = append(found, span{from: i, to: to, kind: "private-key"})
			continue
		}
		if n := keyBody(s[from:]); n > 20 {
			found = append(found, span{from: i, to: from + n, kind: "private-key"})
		}
	}
	return found
}

// keyBody is the length of what looks like the inside of a PEM block, with
// line ends as they are, or as JSON writes them.
func keyBody(s string) int {
	i := 0
	for i < len(s) && (is(s[i], base64|equals|space) || s[i] == '\\' || s[i] == ':' || s[i] == ',') {
		i++
	}
	return i
}

// userinfo finds the passwords in URLs.
func userinfo(s string) (found []span) {
	for i := range every(s, "://") {
		from := i + len("://")
		end := from + strings.IndexAny(s[from:min(len(s), from+1024)]+" ", " \t\r\n/?#\"'`<>\\")
		authority := s[from:end]
		at := strings.LastIndexByte(authority, '@')
		if at < 0 {
			continue
		}
		_, password, ok := strings.Cut(authority[:at], ":")
		if ok && password != "" && !reference(password) {
			found = append(found, span{from: from + at - len(password), to: from + at})
		}
	}
	return found
}

// bearers finds what comes after "Bearer" wherever it stands.
func bearers(s string) (found []span) {
	for _, scheme := range []string{"Bearer ", "bearer ", "BEARER "} {
		for i := range every(s, scheme) {
			from := i + len(scheme)
			n := run(s[from:], url64|base64|dot|tilde|equals)
			if n >= 16 && boundary(s, i) && strings.ContainsAny(s[from:from+n], "0123456789") {
				found = append(found, span{from: from, to: from + n})
			}
		}
	}
	return found
}
