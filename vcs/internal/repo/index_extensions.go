package repo

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// decodeExtensions reads what follows the entries. Extensions whose name
// begins with a capital may be skipped; one that does not changes the meaning
// of what was read.
func (x *Index) decodeExtensions(body []byte, at int) (*indexLink, error) {
	var link *indexLink
	for at < len(body) {
		if len(body)-at < 8 {
			return nil, errors.New("truncated extension")
		}
		name := string(body[at : at+4])
		size := uint64(binary.BigEndian.Uint32(body[at+4:]))
		at += 8
		if size > uint64(len(body)-at) {
			return nil, fmt.Errorf("extension %q is truncated", name)
		}
		content := body[at : at+int(size)]
		at += int(size)
		switch {
		case name == "TREE":
			x.Tree = parseCacheTree(stringOf(content))
		case name == "link":
			l, err := parseLink(content)
			if err != nil {
				return nil, err
			}
			link = l
		case name == "sdir":
			x.Sparse = true
			x.degrade("sparse index")
		case name[0] < 'A' || name[0] > 'Z':
			x.degrade(fmt.Sprintf("index extension %q", name))
		}
	}
	return link, nil
}

// maxTreeDepth is more directories than a path can have.
const maxTreeDepth = 4096

// parseCacheTree returns nil when the extension makes no sense: it is only
// ever a saving.
func parseCacheTree(s string) *CacheTree {
	top := make([]CacheTree, 1)
	rest, ok := parseTreeNode(s, &top[0], 0)
	if !ok || rest != "" {
		return nil
	}
	return &top[0]
}

// parseTreeNode reads "name NUL count SP children LF [id]" and the children.
func parseTreeNode(s string, node *CacheTree, depth int) (rest string, ok bool) {
	name, s, ok1 := strings.Cut(s, "\x00")
	counts, s, ok2 := strings.Cut(s, "\n")
	covered, subtrees, ok3 := strings.Cut(counts, " ")
	count, err1 := strconv.Atoi(covered)
	children, err2 := strconv.Atoi(subtrees)
	if !ok1 || !ok2 || !ok3 || err1 != nil || err2 != nil ||
		count < -1 || children < 0 || depth > maxTreeDepth {
		return "", false
	}
	node.Name, node.Count = name, count
	if count >= 0 {
		if len(s) < len(node.OID) {
			return "", false
		}
		s = s[copy(node.OID[:], s):]
	}
	const leastChild = len("a\x00-1 0\n")
	if children > len(s)/leastChild {
		return "", false
	}
	if children > 0 {
		node.Children = make([]CacheTree, children)
	}
	for i := range node.Children {
		if s, ok = parseTreeNode(s, &node.Children[i], depth+1); !ok {
			return "", false
		}
	}
	return s, true
}
