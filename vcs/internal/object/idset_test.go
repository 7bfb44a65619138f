package object

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestIDSet(t *testing.T) {
	for _, c := range []struct {
		name string
		id   func(i int) ID
	}{
		{"spread", func(i int) ID { return Sum(Blob, binary.LittleEndian.AppendUint32(nil, uint32(i))) }},
		{"one slot", func(i int) ID { return ID{4: byte(i), 5: byte(i >> 8)} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			const n = 2000 // grows more than once
			var set idSet
			var list []indexEntry
			first := c.id(0)
			require.False(t, set.has(list, &first))
			for i := range n {
				list = append(list, indexEntry{id: c.id(i)})
				if i%3 == 0 {
					continue // several at once, and ids that are not in yet when it grows
				}
				set.add(list)
			}
			set.add(list)
			for i := range 2 * n {
				id := c.id(i)
				assert.Equal(t, i < n, set.has(list, &id), i)
			}
		})
	}
}

func TestHad(t *testing.T) {
	s := newStore(t)
	packed := put(t, s, text(1, 100), text(2, 100))[0]
	other := reopened(t, s)
	require.True(t, other.Has(packed), "it has looked for packs")
	late := put(t, s, text(3, 100), text(4, 100))[0]
	w := other.NewWriter()
	defer w.Abort()
	assert.True(t, w.Had(packed))
	assert.True(t, w.Had(late), "published by another before the Writer was made")
	unseen := put(t, s, text(5, 100), text(6, 100))[0]
	assert.False(t, w.Had(unseen), "published since: nobody looks again")
	assert.True(t, other.Has(unseen))

	from := repo(t)
	write(t, from, "a", text(7, 100))
	loose := commitAll(t, from, "loose")
	_, err := other.Import(loose, []string{from + "/.git/objects"})
	require.NoError(t, err)

	assert.True(t, w.Had(loose), "not in a pack")
	absent := Sum(Blob, []byte("absent"))
	assert.False(t, w.Had(absent))

	clean := newStore(t).NewWriter()
	defer clean.Abort()
	require.False(t, clean.Had(absent))
	assert.Zero(t, testing.AllocsPerRun(100, func() { clean.Had(absent) }), "asked for every file of a first capture")
}
