package redact

import "strings"

// secretEndings end the names of secrets, in lower case and without what
// separates words.
var secretEndings = []string{
	"password", "passwords", "passwd", "passphrase", "passcode",
	"secret", "secrets", "token", "authtokens", "accesstokens", "apitokens", "refreshtokens",
	"apikey", "apikeys", "accesskey", "secretkey", "privatekey", "signingkey", "encryptionkey",
	"masterkey", "accountkey", "sharedkey", "authkey",
	"authorization", "cookie", "cookies", "credential", "credentials",
	"dbpass", "databasepass", "userpass", "adminpass", "rootpass", "mysqlpass", "postgrespass", "pgpass",
	"redispass", "smtppass", "mailpass", "ftppass", "authpass", "proxypass", "dbpwd", "userpwd",
	"amzsignature", "googsignature",
}

// openEndings end names that sound like secrets and are none.
var openEndings = []string{
	"pagetoken", "nexttoken", "continuationtoken", "cancellationtoken", "bostoken", "eostoken", "padtoken",
}

// lastLetters are those of all the endings.
var lastLetters = func() string {
	letters := "h" // of auth
	for _, e := range secretEndings {
		letters += e[len(e)-1:]
	}
	return letters
}()

// secretName reports whether the value of something with this name is secret.
func secretName(name string) bool {
	if len(name) < len("auth") || strings.IndexByte(lastLetters, name[len(name)-1]|0x20) < 0 {
		return false
	}
	folded := fold(name)
	if folded == "auth" && strings.HasPrefix(name, "_") { // of .npmrc
		return true
	}
	return endsIn(folded, secretEndings) && !endsIn(folded, openEndings)
}

// secretWhenText is for names that are just as often those of a number or an
// object: only a text under such a name is secret.
func secretWhenText(name string) bool {
	folded := fold(name)
	return folded == "pass" || folded == "auth"
}

// headerName reports whether a header of this name is secret to the end of its
// line.
func headerName(name string) bool {
	switch folded := fold(name); folded {
	case "authorization", "proxyauthorization", "cookie", "setcookie":
		return true
	default:
		return strings.HasPrefix(folded, "x") && strings.HasPrefix(name[1:], "-") && secretName(name)
	}
}

// fold makes apiKey, API_KEY and api-key one.
func fold(name string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'A' && c <= 'Z':
			return c + 'a' - 'A'
		case c == '-' || c == '_' || c == '.' || c == ' ' || c == '$' || c == ':':
			return -1
		}
		return c
	}, name)
}

func endsIn(s string, endings []string) bool {
	for _, e := range endings {
		if strings.HasSuffix(s, e) {
			return true
		}
	}
	return false
}
