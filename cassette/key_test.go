package cassette_test

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retcon-dev/retcon/cassette"
	"github.com/retcon-dev/retcon/internal/crash"
)

const keyPathVariable = "RETCON_TEST_KEY_PATH"

// TestMain lets the test binary be one of many processes that ask for the key.
func TestMain(m *testing.M) {
	path := os.Getenv(keyPathVariable)
	if path == "" {
		os.Exit(m.Run())
	}
	key, err := cassette.StoreKey(path)
	if err != nil {
		os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
	os.Stdout.Write(key)
}

func TestStoreKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tape.key")
	key, err := cassette.StoreKey(path)
	require.NoError(t, err)
	assert.Len(t, key, cassette.KeySize)
	again, err := cassette.StoreKey(path)
	require.NoError(t, err)
	assert.Equal(t, key, again)
	s, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), s.Mode())
	other, err := cassette.StoreKey(path + "2")
	require.NoError(t, err)
	assert.NotEqual(t, key, other)

	require.NoError(t, os.Chmod(path, 0o400))
	again, err = cassette.StoreKey(path)
	require.NoError(t, err, "a key that can only be read will do")
	assert.Equal(t, key, again)
}

func TestStoreKeyLeftUnfinished(t *testing.T) {
	for name, left := range map[string][]byte{"empty": {}, "short": []byte("abc"), "zeros": make([]byte, cassette.KeySize)} {
		path := filepath.Join(t.TempDir(), "tape.key")
		require.NoError(t, os.WriteFile(path, left, 0o600))
		key, err := cassette.StoreKey(path)
		require.NoError(t, err, name)
		assert.NotEqual(t, make([]byte, cassette.KeySize), key, name)
		again, err := cassette.StoreKey(path)
		require.NoError(t, err, name)
		assert.Equal(t, key, again, name)
	}
}

func TestStoreKeyRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "tape.key")
	require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte{1}, 33), 0o600))
	_, err := cassette.StoreKey(path)
	require.ErrorContains(t, err, "longer than a key")
	_, err = cassette.StoreKey(filepath.Join(dir, "none", "tape.key"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// Nobody else looks for a key while one is being made.
func TestStoreKeyIsLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tape.key")
	visits := 0
	crash.Hook = func(name string) {
		if name != "cassette.key" {
			return
		}
		visits++
		f, err := os.Open(path)
		require.NoError(t, err)
		defer f.Close()
		assert.Equal(t, syscall.EWOULDBLOCK, syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB))
	}
	defer func() { crash.Hook = nil }()
	for range 2 {
		_, err := cassette.StoreKey(path)
		require.NoError(t, err)
	}
	assert.Equal(t, 1, visits, "made once")
}

func TestStoreKeyTogether(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	for range 3 {
		path := filepath.Join(t.TempDir(), "tape.key")
		keys := make([][]byte, 8)
		var wg sync.WaitGroup
		for i := range keys {
			wg.Go(func() {
				c := exec.Command(self)
				c.Env = append(os.Environ(), keyPathVariable+"="+path)
				var err error
				keys[i], err = c.Output()
				assert.NoError(t, err)
			})
		}
		wg.Wait()
		for _, key := range keys {
			assert.Len(t, key, cassette.KeySize)
			assert.Equal(t, keys[0], key)
		}
	}
}
