package object

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

func TestSetAside(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, pack, idx string){
		"empty pack":  func(t *testing.T, pack, _ string) { truncate(t, pack, 0) },
		"short pack":  func(t *testing.T, pack, _ string) { truncate(t, pack, 40) },
		"empty index": func(t *testing.T, _, idx string) { truncate(t, idx, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store.git")
			s, err := Create(dir)
			if err != nil {
				t.Fatal(err)
			}
			var ids []ID
			for _, text := range []string{"whole, and staying", "cut off by a power failure"} {
				w := s.NewWriter()
				id, err := w.Add(Blob, []byte(text))
				if err != nil {
					t.Fatal(err)
				}
				if err := w.Commit(false); err != nil {
					t.Fatal(err)
				}
				ids = append(ids, id)
			}
			s.Close()
			if s, err = Open(dir); err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			set := s.set()
			for _, p := range set.packs {
				if x, err := p.index(); err == nil {
					if x.find(&ids[1]) >= 0 {
						spoil(t, p.packPath(), p.idxPath())
					}
				}
			}
			s.Close()
			if s, err = Open(dir); err != nil {
				t.Fatal(err)
			}
			if n, err := s.SetAside(context.Background()); err != nil || n != 1 {
				t.Fatalf("set aside %d packs, %v", n, err)
			}
			if !s.Has(ids[0]) || s.Has(ids[1]) {
				t.Errorf("has the whole one: %v, the cut one: %v", s.Has(ids[0]), s.Has(ids[1]))
			}
		})
	}
}

func truncate(t *testing.T, path string, size int64) {
	t.Helper()
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}
