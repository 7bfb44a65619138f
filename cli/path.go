package cli

import (
	"encoding/base64"
	"unicode/utf8"
)

// place is a file's name in a document. Names are bytes and JSON is text: what
// is not UTF-8 stands beside its nearest text as it is.
type place struct {
	Path   string `json:"path"`
	Base64 string `json:"path_base64,omitempty"`
}

func newPlace(path string) place {
	if utf8.ValidString(path) {
		return place{Path: path}
	}
	return place{Path: path, Base64: base64.StdEncoding.EncodeToString([]byte(path))}
}

func newPlaces(paths []string) []place {
	all := make([]place, 0, len(paths))
	for _, p := range paths {
		all = append(all, newPlace(p))
	}
	return all
}
