package object

import "encoding/binary"

// An idSet finds ids in a list of entries that only grows. It takes a quarter of
// the memory of a map.
type idSet struct {
	slots []int32 // by hash: a position in the list, plus one
	n     int     // entries that are in
}

// has reports whether id stands in the list, which must be the one that add saw.
func (s *idSet) has(list []indexEntry, id *ID) bool {
	if len(s.slots) == 0 {
		return false
	}
	for i := s.slot(id); s.slots[i] != 0; i = s.after(i) {
		if list[s.slots[i]-1].id == *id {
			return true
		}
	}
	return false
}

// add takes in what was appended to the list since the last call.
func (s *idSet) add(list []indexEntry) {
	if 4*len(list) > 3*len(s.slots) {
		s.slots, s.n = make([]int32, max(1<<10, 2*len(s.slots))), 0
	}
	for ; s.n < len(list); s.n++ {
		i := s.slot(&list[s.n].id)
		for s.slots[i] != 0 {
			i = s.after(i)
		}
		s.slots[i] = int32(s.n + 1)
	}
}

// slot is where the search for id begins. The number of slots is a power of two.
func (s *idSet) slot(id *ID) int {
	return int(binary.LittleEndian.Uint32(id[:])) & (len(s.slots) - 1)
}

func (s *idSet) after(i int) int { return (i + 1) & (len(s.slots) - 1) }
