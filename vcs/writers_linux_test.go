package vcs

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Whoever had a file open when it was displaced, and writes into it after that,
// finds it rescued: when they are done before it is looked for, with as many bytes
// as there were, and when they are not done yet.
func TestRescueOfOpenFiles(t *testing.T) {
	for name, say := range map[string]string{"longer": "and more than that", "as long": "2wo"} {
		for how, late := range map[string]bool{"before": false, "meanwhile": true} {
			t.Run(name+" "+how, func(t *testing.T) {
				ctx := context.Background()
				dir := filepath.Join(t.TempDir(), "plain")
				write(t, dir, "a", "one")
				write(t, dir, "b", "one")
				w := open(t, dir, Options{Create: true})
				one := capture(t, w)
				write(t, dir, "a", "two")
				write(t, dir, "b", "two")
				write(t, dir, "c", "two")
				release, err := w.Hold(ctx)
				require.NoError(t, err)
				defer release()
				now, err := w.Capture(ctx, CaptureOptions{Sync: true})
				require.NoError(t, err)
				changes, err := w.Diff(ctx, now.Commit, one.Commit)
				require.NoError(t, err)
				s, err := w.Stage(ctx, "test", changes)
				require.NoError(t, err)
				defer s.Discard()
				var files []*os.File
				for _, path := range []string{"a", "c"} { // one is replaced, one removed
					f, err := os.OpenFile(filepath.Join(dir, path), os.O_WRONLY, 0)
					require.NoError(t, err)
					files = append(files, f)
				}
				require.NoError(t, s.Swap(ctx))
				_, err = s.Verify(ctx)
				require.NoError(t, err)
				wrote := make(chan struct{})
				writes := func() {
					defer close(wrote)
					if late {
						time.Sleep(20 * time.Millisecond)
					}
					for _, f := range files {
						_, err := f.WriteString(say)
						assert.NoError(t, err)
						assert.NoError(t, f.Close())
					}
				}
				if late {
					go writes()
				} else {
					writes()
				}
				c, paths, err := s.Rescue(ctx, false)
				require.NoError(t, err)
				<-wrote
				require.Equal(t, []string{"a", "c"}, paths)
				kept, err := w.Files(ctx, c)
				require.NoError(t, err)
				for _, f := range kept {
					text, err := w.Content(f.New)
					require.NoError(t, err)
					assert.Equal(t, say, string(text), f.Path)
				}
			})
		}
	}
}
