package retcon

import (
	"path/filepath"

	"github.com/retcon-dev/retcon/cassette"
	"github.com/retcon-dev/retcon/ledger"
)

// tape is what operations of runs are recorded on; nil when that is switched
// off. Without the store's key arguments are told apart by what redaction
// leaves of them.
func (w *Workspace) tape(db *ledger.DB) *cassette.Tape {
	if w.opt.NoTape {
		return nil
	}
	key, err := cassette.StoreKey(filepath.Join(w.Folder(), "tape.key"))
	if err != nil {
		w.missed("the key of the tape", err)
	}
	return &cassette.Tape{DB: db, Key: key, Max: w.opt.TapeMax}
}
