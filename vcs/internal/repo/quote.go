package repo

// unquoteC reads a C-style quoted string, as git writes odd paths, from the
// beginning of s and returns what follows it.
func unquoteC(s string) (value, rest string, ok bool) {
	if s == "" || s[0] != '"' {
		return "", s, false
	}
	var b []byte
	for i := 1; i < len(s); i++ {
		switch c := s[i]; c {
		case '"':
			return string(b), s[i+1:], true
		case '\\':
			i++
			if i >= len(s) {
				return "", s, false
			}
			plain, width, ok := unescapeC(s[i:])
			if !ok {
				return "", s, false
			}
			b = append(b, plain)
			i += width - 1
		default:
			b = append(b, c)
		}
	}
	return "", s, false
}

// unescapeC reads what stands after a backslash.
func unescapeC(s string) (plain byte, width int, ok bool) {
	switch c := s[0]; c {
	case 'a':
		return '\a', 1, true
	case 'b':
		return '\b', 1, true
	case 'f':
		return '\f', 1, true
	case 'n':
		return '\n', 1, true
	case 'r':
		return '\r', 1, true
	case 't':
		return '\t', 1, true
	case 'v':
		return '\v', 1, true
	case '\\', '"':
		return c, 1, true
	case '0', '1', '2', '3':
		if len(s) < 3 || s[1] < '0' || s[1] > '7' || s[2] < '0' || s[2] > '7' {
			return 0, 0, false
		}
		return (c-'0')<<6 | (s[1]-'0')<<3 | (s[2] - '0'), 3, true
	}
	return 0, 0, false
}
