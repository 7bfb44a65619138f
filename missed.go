package retcon

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/retcon-dev/retcon/agent"
	"github.com/retcon-dev/retcon/ledger"
)

// missed notes what of a session was not recorded.
func (s *session) missed(what string, err error) {
	s.w.missed(what+" "+sessionMark(s.event.Agent, s.event.Session), err)
}

// missedHook notes an event that was not recorded, under its session where the
// payload names one.
func (w *Workspace) missedHook(o HookOptions, err error) {
	what := "hook"
	if e, derr := agent.Decode(o.Agent, o.Event, o.Payload); derr == nil && e.Session != "" {
		what += " " + sessionMark(e.Agent, e.Session)
	}
	w.missed(what, err)
}

// sessionMark is how a note names a session: in one word.
func sessionMark(client, session string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' {
			return '_'
		}
		return r
	}, client+"/"+session)
}

// missedMax is how much of the notes is looked at.
const missedMax = 4 << 20

// missedBy are the notes about a session that no timeline has told of; the next
// one does not tell of them again. What can't be read, Doctor says.
func (w *Workspace) missedBy(run ledger.Run) (notes []string) {
	f, err := os.Open(w.missedPath())
	if run.Kind != KindSession || err != nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	told := w.missedTold()
	from := told[run.UID]
	if from > info.Size() { // somebody has removed the notes since
		from = 0
	}
	if _, err := f.Seek(max(from, info.Size()-missedMax), io.SeekStart); err != nil {
		return nil
	}
	mark := " " + sessionMark(run.Source, run.ExtID) + ": "
	for lines := bufio.NewReader(f); ; {
		line, err := lines.ReadString('\n')
		if err != nil { // what is being written will be told the next time
			break
		}
		if strings.Contains(line, mark) {
			notes = append(notes, strings.TrimSuffix(line, "\n"))
		}
	}
	if len(notes) > 0 {
		told[run.UID] = info.Size()
		w.tellMissed(told)
	}
	return notes
}

// missedTold is how far the notes were told of, by the run that they are about.
func (w *Workspace) missedTold() map[string]int64 {
	told := map[string]int64{}
	if b, err := os.ReadFile(w.toldPath()); err == nil {
		_ = json.Unmarshal(b, &told) // damaged: they are told once more
	}
	return told
}

// tellMissed notes what was told. Where it can't, it is told again.
func (w *Workspace) tellMissed(told map[string]int64) {
	var b bytes.Buffer
	if json.NewEncoder(&b).Encode(told) != nil {
		return
	}
	temp := w.toldPath() + ".new"
	if os.WriteFile(temp, b.Bytes(), 0o600) == nil {
		_ = os.Rename(temp, w.toldPath()) // told again, then
	}
}

func (w *Workspace) toldPath() string { return filepath.Join(w.Folder(), "log", "missed.told") }
