package ignore

// anyByte is "?". Names have no slash in them, so it needs no exception.
var anyByte = func() *byteSet {
	var s byteSet
	s.invert()
	return &s
}()

// parse splits a pattern at its slashes and compiles each part. ok is false
// when the pattern is malformed and therefore matches nothing.
//
// Where case folds, plain letters are made small, as names are. Letters after
// a backslash and single letters in brackets are not, so a capital there
// matches nothing. That is git's doing.
func parse(p string, foldCase bool) (segs []segment, ok bool) {
	var ops []op
	end := func() {
		segs = append(segs, segment{glob: newGlob(ops)})
		ops = nil
	}
	deep := func() {
		if n := len(segs); n == 0 || !segs[n-1].deep {
			segs = append(segs, segment{deep: true})
		}
	}
	for i := 0; i < len(p); i++ {
		switch c := p[i]; c {
		case '/':
			end()
		case '\\':
			i++
			switch {
			case i == len(p):
				return nil, false
			case p[i] == '/':
				end()
			default:
				ops = append(ops, op{b: p[i]})
			}
		case '?':
			ops = append(ops, op{set: anyByte})
		case '*':
			first := i
			for i+1 < len(p) && p[i+1] == '*' {
				i++
			}
			rest := p[i+1:]
			alone := i > first && len(ops) == 0
			switch {
			case alone && rest == "": // everything below, at any depth
				deep()
			case alone && rest[0] == '/': // no directory, or some
				deep()
				i++
				continue
			case alone && len(rest) > 1 && rest[:2] == `\/`: // some directories
				deep()
			}
			ops = append(ops, op{star: true})
		case '[':
			set, n, ok := parseSet(p[i+1:], foldCase)
			if !ok {
				return nil, false
			}
			ops = append(ops, op{set: set})
			i += n
		default:
			if foldCase {
				c = lower(c)
			}
			ops = append(ops, op{b: c})
		}
	}
	end()
	return segs, true
}
