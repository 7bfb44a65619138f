package vcs

import "testing"

// What holds with openat2 holds where the kernel, or a sandbox, has none.
func TestWithoutOpenat2(t *testing.T) {
	noOpenat2.Store(true)
	defer noOpenat2.Store(false)
	for _, path := range []string{"d/a", "d/e/a", "d/e/f/a"} {
		t.Run(path, func(t *testing.T) { linkInTheWay(t, path) })
	}
	restoreRandom(t, 20)
}
