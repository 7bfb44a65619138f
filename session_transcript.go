package retcon

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/retcon-dev/retcon/agent"
	"github.com/retcon-dev/retcon/ledger"
)

// We keep a copy of what a client writes about a conversation: clients delete
// and rewrite their files. It is made in the hooks of a turn's edges, reads what
// is new since the last time, and never writes to the client's file.

const (
	pieceMax = 192 << 10 // of a copy: below what the ledger keeps elsewhere
	copyMax  = 64 << 20  // that one hook copies; the next one goes on
)

// follower is a transcript being read on.
type follower struct {
	file *os.File
	copy ledger.Transcript // as far as it went before; without an ID, it begins
	seen int64             // the newest copy there was
	more []byte            // whole lines that came since
	sum  hash.Hash         // of all of it

	entries  []agent.Entry // in more
	leaf     string
	straight bool
	kept     bool
}

// follow reads on in the transcript that the event names. Nil when there is none
// to read. The file has to be closed.
func (s *session) follow(ctx context.Context) (*follower, error) {
	path := s.event.Transcript
	if path == "" || s.event.Subagent != "" {
		return nil, nil
	}
	info, err := os.Stat(path) // not opened before: a FIFO would not return
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f := &follower{copy: ledger.Transcript{RunID: s.run.ID, Path: path}}
	if f.file, err = os.Open(path); err != nil {
		return nil, err
	}
	if err = f.read(ctx, s); err != nil {
		return nil, errors.Join(fmt.Errorf("transcript %s: %w", path, err), f.file.Close())
	}
	return f, nil
}

func (f *follower) read(ctx context.Context, s *session) error {
	var last []byte // what the copy ends with
	var at ledger.Piece
	err := s.db.View(ctx, func(tx *ledger.Tx) error {
		known, err := newestCopy(tx, s.run.ID, f.copy.Path)
		if err != nil || known.ID == 0 {
			return err
		}
		f.copy, f.seen = known, known.ID
		if at, err = tx.LastPiece(known.ID); errors.Is(err, ledger.ErrNotFound) {
			return nil
		}
		if err == nil {
			last, err = tx.Content(at.Hash)
		}
		return err
	})
	if err != nil {
		return err
	}
	f.sum = sha256.New()
	if f.copy.Size > 0 && (!same(f.file, at.Start, last) || f.sum.(encoding.BinaryUnmarshaler).UnmarshalBinary(f.copy.Digest) != nil) {
		f.copy = ledger.Transcript{RunID: s.run.ID, Path: f.copy.Path} // it was written anew
		f.sum = sha256.New()
	}
	if f.more, err = io.ReadAll(io.NewSectionReader(f.file, f.copy.Size, copyMax)); err != nil {
		return err
	}
	f.more = f.more[:bytes.LastIndexByte(f.more, '\n')+1]
	f.sum.Write(f.more)
	f.leaf, f.straight = f.copy.Leaf, true
	f.entries, _, err = agent.ReadTranscript(s.event.Agent, f.part(), f.copy.Size)
	if errors.Is(err, agent.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return err
	}
	now, err := agent.Follow(s.event.Agent, f.copy.Leaf, f.entries)
	f.leaf, f.straight = now.Leaf, now.Straight
	return err
}

// first tells that no call of the turn has ended yet, where there is a
// transcript to look into once one has.
func (s *session) first(ctx context.Context) bool {
	if s.event.Transcript == "" || s.event.Subagent != "" {
		return false
	}
	err := s.db.View(ctx, func(tx *ledger.Tx) error {
		head, err := tx.RunHead(s.run.ID)
		if err == nil {
			_, err = tx.FirstComing(head, EventToolAfter)
		}
		return err
	})
	return errors.Is(err, ledger.ErrNotFound)
}

// done closes what an event had open.
func (s *session) done() {
	if s.heard != nil {
		_ = s.heard.file.Close() // it was read
	}
}

// newestCopy is the copy of a file that is added to; one without an ID when
// there is none.
func newestCopy(tx *ledger.Tx, run int64, path string) (ledger.Transcript, error) {
	all, err := tx.Transcripts(run)
	for _, t := range slices.Backward(all) {
		if t.Path == path {
			return t, err
		}
	}
	return ledger.Transcript{}, err
}

// same tells that a file holds a text at an offset.
func same(r io.ReaderAt, at int64, text []byte) bool {
	got := make([]byte, len(text))
	_, err := r.ReadAt(got, at)
	return (err == nil || errors.Is(err, io.EOF)) && bytes.Equal(got, text)
}

// end is how far the transcript was read.
func (f *follower) end() int64 { return f.copy.Size + int64(len(f.more)) }

// part is the transcript as far as it was read.
func (f *follower) part() io.ReaderAt { return io.NewSectionReader(f.file, 0, f.end()) }

// keep adds what came since to the copy. Where another hook was quicker there
// is nothing left to add.
func (f *follower) keep(ctx context.Context, db *ledger.DB) error {
	if len(f.more) == 0 || f.kept {
		return nil
	}
	state, err := f.sum.(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil {
		return err
	}
	var pieces []ledger.Prepared
	for p := range slices.Chunk(f.more, pieceMax) {
		pieces = append(pieces, ledger.Prepare(p))
	}
	t := f.copy
	t.Digest = state
	if f.straight || t.ID == 0 || f.wentOn() { // else it is for the prompt that follows to show where it goes on from
		t.Leaf = f.leaf
	}
	err = db.Update(ctx, func(tx *ledger.Tx) error {
		if t.ID == 0 { // another hook may have begun it
			now, err := newestCopy(tx, t.RunID, t.Path)
			if err != nil || now.ID != f.seen {
				return err
			}
		}
		_, err := tx.AppendTranscript(t, pieces)
		return err
	})
	if errors.Is(err, ledger.ErrStale) {
		err = nil
	}
	f.kept = err == nil
	return err
}

// pointer is where the conversation stands.
func (f *follower) pointer(session string) conversation {
	return conversation{Session: session, Transcript: f.copy.Path, Entry: f.leaf, Offset: f.end(), Prefix: hex.EncodeToString(f.sum.Sum(nil))}
}

// copied is our copy of a transcript, in memory.
func copied(tx *ledger.Tx, t ledger.Transcript) ([]byte, error) {
	pieces, err := tx.Pieces(t.ID)
	if err != nil {
		return nil, err
	}
	text := make([]byte, 0, t.Size)
	for _, p := range pieces {
		b, err := tx.Content(p.Hash)
		if err != nil {
			return nil, fmt.Errorf("copy of %s: %w", t.Path, err)
		}
		text = append(text, b...)
	}
	return text, nil
}
