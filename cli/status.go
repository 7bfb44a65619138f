package cli

import (
	"context"

	"github.com/retcon-dev/retcon"
)

// status answers a bare "retcon": what is here, and what can be done. Where
// nothing was ever kept it makes nothing, and says how to begin.
func (c *console) status(ctx context.Context) error {
	if !c.hasStore() {
		return c.answer(nothingYet{
			standing: standing{
				Changes: []change{}, NotCaptured: []missing{}, OpenRuns: []ran{}, Warnings: []string{}, Next: []string{"retcon init", "retcon checkpoint"},
			},
			help: newOverview(c.app()),
		})
	}
	return c.use(ctx, retcon.Options{}, func(w *retcon.Workspace) error {
		s, err := w.Status(ctx)
		if err != nil {
			return err
		}
		return c.answer(newStanding(s))
	})
}

// standing is the state of a workspace at a glance.
type standing struct {
	Root        string    `json:"root"`
	Kind        string    `json:"kind"`
	Folder      string    `json:"folder"`
	Newest      *taken    `json:"newest"`
	Checkpoints int       `json:"checkpoints"`
	Changes     []change  `json:"changes"`
	Totals      totals    `json:"totals"`
	Head        head      `json:"head"`
	NotCaptured []missing `json:"not_captured"`
	OpenRuns    []ran     `json:"open_runs"`
	LastOp      *op       `json:"last_operation"`
	CanUndo     bool      `json:"can_undo"`
	CanRedo     bool      `json:"can_redo"`
	Warnings    []string  `json:"warnings"`
	Next        []string  `json:"next"`
}

func newStanding(s *retcon.Status) standing {
	told := standing{
		Root: s.Root, Kind: s.Kind, Folder: s.Folder, Checkpoints: s.Checkpoints, Head: head{s.Head.Ref, s.Head.ID},
		NotCaptured: newMissing(s.NotCaptured), OpenRuns: newRuns(s.OpenRuns),
		CanUndo: s.CanUndo, CanRedo: s.CanRedo, Warnings: s.Warnings, Next: s.Next,
	}
	told.Changes, told.Totals = newChanges(s.Changes)
	if s.Newest != nil {
		t := newTaken(s.Newest)
		told.Newest = &t
	}
	if s.LastOp != nil {
		o := newOp(s.LastOp)
		told.LastOp = &o
	}
	return told
}

func (s standing) Text(p *page) {
	kind := map[string]string{"git": "git repository", "linked": "linked worktree", "submodule": "submodule", "plain": "folder"}[s.Kind]
	p.printf("%s  %s", p.bold(name(s.Root)), kind)
	if s.Kind != "plain" {
		p.printf(", %s", s.Head)
	}
	p.printf("\n")
	if s.Newest == nil {
		p.printf("no checkpoints yet\n")
	} else {
		p.table([][]string{s.Newest.row(p)})
	}
	switch {
	case s.Newest == nil:
	case len(s.Changes) == 0:
		p.printf("nothing has changed since\n")
	default:
		p.printf("since then: %s\n", s.Totals)
		for i, d := range s.Changes {
			if i == shown {
				p.printf("  %s\n", p.dim("and more: retcon diff "+s.Newest.Ref))
				break
			}
			p.printf("  ")
			d.line(p)
		}
	}
	for _, r := range s.OpenRuns {
		if !r.Dead {
			p.printf("running: %s  %s, since %s\n", r.Ref, short(r.Command), p.ago(r.Created))
		}
	}
	if s.LastOp != nil {
		p.printf("last move: op %d  %s, %s\n", s.LastOp.ID, s.LastOp.did(), p.ago(s.LastOp.Started))
	}
	for _, m := range s.NotCaptured {
		p.printf("%s %s: %s\n", p.yellow("not captured:"), name(m.Path), m.why())
	}
	for _, w := range s.Warnings {
		p.printf("%s %s\n", p.yellow("warning:"), clean(w))
	}
	for i, next := range s.Next {
		lead := "next:  "
		if i > 0 {
			lead = "       "
		}
		p.printf("%s%s\n", lead, next)
	}
}

// nothingYet is the state where there is no store: a beginner's, so it comes
// with the help.
type nothingYet struct {
	standing
	help overview
}

func (n nothingYet) Text(p *page) { n.help.Text(p) }
