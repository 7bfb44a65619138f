package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/timeline"
)

// moveFlags are those of every verb that moves the worktree.
func moveFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"},
		&cli.BoolFlag{Name: "dry-run", Usage: "show what would happen, and touch nothing"},
		&cli.StringFlag{Name: "conflicts", Usage: "of a file that both the run and you changed take `side`: theirs (the checkpoint's) or mine"},
		&cli.StringFlag{Name: "request-id", Usage: "carry this out once, however often it is asked for under the same `key`"},
		&cli.BoolFlag{Name: "steal", Usage: "go ahead although a run is going on here"},
		&cli.StringFlag{Name: "reason", Usage: "why, in a `text`: the agents that work here are told with their next prompt"},
	}
}

// policy reads --conflicts.
func policy(ctx *cli.Context) (string, error) {
	switch p := ctx.String("conflicts"); p {
	case timeline.Refuse, timeline.Theirs, timeline.Mine:
		return p, nil
	default:
		return "", misuse(fmt.Sprintf("--conflicts is theirs or mine, not %q", p))
	}
}

// ask shows a plan to the person at the terminal and asks; with --yes nobody is
// asked, and without a terminal nothing is done.
func (c *console) ask(yes bool) func(*timeline.Plan) (bool, error) {
	if yes {
		return nil
	}
	return func(plan *timeline.Plan) (bool, error) {
		m := newMoved(&timeline.Result{Verb: plan.Verb, Plan: plan, DryRun: true})
		if !c.json && !c.quiet {
			c.work.done()
			var text strings.Builder
			page := c.page(&text)
			_, terminal := c.Terminal(c.err)
			page.colour = c.colour && terminal
			m.history(page)
			m.effects(page)
			m.plan(page, len(plan.Changes))
			fmt.Fprint(c.err, text.String())
		}
		question := fmt.Sprintf("%s %s?", m.verb(), m.what())
		if err := c.confirm(question, c.again("--yes")); err != nil {
			return false, err
		}
		return true, nil
	}
}

// moved is a move, carried out or planned.
type moved struct {
	Op            int64       `json:"op"`
	Verb          string      `json:"verb"`
	Target        string      `json:"target"`
	TargetCommit  string      `json:"target_commit"`
	Base          string      `json:"base_commit"`
	PlanID        string      `json:"plan"`
	Undoes        int64       `json:"undoes"`
	DryRun        bool        `json:"dry_run"`
	NothingToDo   bool        `json:"nothing_to_do"`
	Replayed      bool        `json:"replayed"`
	Safety        string      `json:"safety"`
	Rescue        string      `json:"rescue"`
	Rescued       []place     `json:"rescued"`
	Left          []place     `json:"left"`
	Verified      int         `json:"verified"`
	Changes       []step      `json:"changes"`
	Totals        totals      `json:"totals"`
	Kept          []note      `json:"kept"`
	Conflicts     []note      `json:"conflicts"`
	NotRestorable []note      `json:"not_restorable"`
	Warnings      []string    `json:"warnings"`
	Reason        string      `json:"reason"`
	Head          bool        `json:"head"`
	Index         bool        `json:"index"`
	HeadMoved     *headChange `json:"head_moved"`

	Effects []effectStep      `json:"effects"` // that it goes behind
	History *timeline.History `json:"history"` // of the run that moves along; null for none
}

// step is what happens to one path. A directory that comes or goes together with
// something in it is implied: it is done, but not counted and not shown.
type step struct {
	change
	Action string `json:"action"`
	Owner  string `json:"owner"`

	implied bool
}

func newSteps(all []timeline.Step) []step {
	told := make([]step, 0, len(all))
	for i, s := range all {
		one := step{change: newChange(s.FileChange), Action: s.Action, Owner: string(s.Owner)}
		if s.Action == timeline.Mkdir || s.Action == timeline.Rmdir {
			for _, next := range all[i+1:] { // sorted: what is in it follows, but for names such as "pkg-x"
				if strings.HasPrefix(next.Path, s.Path+"/") {
					one.implied = true
					break
				}
				if !strings.HasPrefix(next.Path, s.Path) {
					break
				}
			}
		}
		told = append(told, one)
	}
	return told
}

// note is a path that is left as it is, and why.
type note struct {
	place
	Why string `json:"why"`
}

type headChange struct {
	From head `json:"from"`
	To   head `json:"to"`
}

func newMoved(r *timeline.Result) moved {
	m := moved{
		Op: r.Op, Verb: r.Verb, DryRun: r.DryRun, NothingToDo: r.NothingToDo, Replayed: r.Replayed,
		Safety: r.Safety, Rescue: r.Rescue, Rescued: newPlaces(r.Rescued), Left: newPlaces(r.Left), Verified: r.Verified,
		Changes: []step{}, Kept: []note{}, Conflicts: []note{}, NotRestorable: []note{}, Warnings: []string{}, Effects: []effectStep{},
	}
	p := r.Plan
	if p == nil {
		return m
	}
	m.Reason = p.Reason
	m.Target, m.TargetCommit, m.Base, m.PlanID, m.Undoes = p.Target, string(p.TargetCommit), string(p.Base), p.ID, p.Undoes
	m.Head, m.Index, m.History = p.Head, p.Index, p.History
	m.Changes, m.Effects = newSteps(p.Changes), newEffectSteps(p.Effects)
	for _, s := range m.Changes {
		if !s.implied {
			m.Totals.add(s.Change)
		}
	}
	m.Kept, m.Conflicts, m.NotRestorable = newNotes(p.Kept), newNotes(p.Conflicts), newNotes(p.NotRestorable)
	m.Warnings = append(m.Warnings, p.Warnings...)
	if h := p.HeadMoved; h != nil {
		m.HeadMoved = &headChange{head{h.From.Ref, h.From.ID}, head{h.To.Ref, h.To.ID}}
	}
	return m
}

func newNotes(all []timeline.Note) []note {
	told := make([]note, 0, len(all))
	for _, n := range all {
		told = append(told, note{newPlace(n.Path), n.Why})
	}
	return told
}

// shown is how many paths an answer lists; a plan that is asked about lists all.
const shown = 20

func (m moved) Text(p *page) {
	switch {
	case m.NothingToDo || len(m.Changes) == 0 && !m.Head && !m.Index && m.History == nil && !m.acts():
		if m.keeps() {
			p.printf("nothing was done: what differs from %s is kept", m.what())
			if m.Verb == "restore" {
				p.printf(" (--exact puts it back too)")
			}
			p.printf("\n")
		} else {
			p.printf("nothing to do: the worktree is as in %s\n", m.what())
		}
		m.asides(p)
		return
	case m.DryRun:
		p.printf("would %s %s: %s\n", m.verb(), m.what(), m.sum())
		m.history(p)
		m.effects(p)
		m.plan(p, len(m.Changes))
		if m.History != nil {
			p.printf("plan: %s\n", m.PlanID)
		}
		if len(m.Conflicts) > 0 {
			p.printf("refused like this; say which side to take: --conflicts theirs, or --conflicts mine\n")
		}
		return
	}
	done := map[string]string{"restore": "restored", "undo": "undid", "redo": "took back the undo,", "rewind": "rewound to",
		"timetravel": "travelled to", "revert": "reverted to", "retry-task": "retries", "rerun": "runs again"}[m.Verb]
	if done == "" {
		done = m.Verb + ":"
	}
	p.printf("op %d  %s %s: %s", m.Op, done, p.bold(m.what()), m.sum())
	if m.Replayed {
		p.printf(" %s", p.dim("(done before, under this request id)"))
	}
	p.printf("\n")
	m.history(p)
	m.effects(p)
	m.plan(p, shown)
	for _, l := range m.Left {
		p.printf("%s %s: not empty\n", p.yellow("left:"), name(l.Path))
	}
	if m.Rescue != "" {
		p.printf("%s written while retcon worked, kept in %s:\n", p.yellow("rescued:"), p.bold(m.Rescue))
		for _, r := range m.Rescued {
			p.printf("  %s\n", name(r.Path))
		}
	}
	if m.Safety != "" {
		p.printf("before it: %s, and back with: retcon %s\n", m.Safety, m.back())
	}
}

// back is the verb that takes the move back.
func (m moved) back() string {
	if m.Verb == "undo" {
		return "redo"
	}
	return "undo"
}

// what names the other end of the move.
func (m moved) what() string {
	if m.Undoes != 0 {
		return fmt.Sprintf("op %d", m.Undoes)
	}
	return name(m.Target)
}

// keeps tells that something differs which the move leaves as it is, ignored
// paths aside, or that cannot be put back.
func (m moved) keeps() bool {
	return len(m.NotRestorable) > 0 || slices.ContainsFunc(m.Kept, func(n note) bool { return n.Why != "ignored" })
}

// verb is the move as one says it.
func (m moved) verb() string {
	if m.Verb == "" {
		return "restore"
	}
	return m.Verb
}

// sum says how much the move changes.
func (m moved) sum() string {
	text := m.Totals.String()
	for _, also := range []struct {
		is   bool
		what string
	}{{m.Head, "HEAD"}, {m.Index, "the index"}} {
		if !also.is {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += also.what
	}
	if text == "" {
		return "nothing"
	}
	return text
}

// plan lists at most n of the paths, and all that is left alone.
func (m moved) plan(p *page, n int) {
	i := 0
	for _, s := range m.Changes {
		if s.implied {
			continue
		}
		if i++; i > n {
			p.printf("  %s\n", p.dim(fmt.Sprintf("and %d more: retcon op show %d", m.Totals.all()-n, m.Op)))
			break
		}
		p.printf("  ")
		s.line(p)
	}
	m.asides(p)
}

// asides are what a reader must know beside the changes.
func (m moved) asides(p *page) {
	list := func(title string, all []note) {
		for i, n := range all {
			if i == shown {
				p.printf("%s and %d more\n", title, len(all)-shown)
				return
			}
			p.printf("%s %s: %s\n", title, name(n.Path), clean(n.Why))
		}
	}
	list("kept:", m.Kept)
	list(p.yellow("cannot be put back:"), m.NotRestorable)
	list(p.red("conflict:"), m.Conflicts)
	if h := m.HeadMoved; h != nil && !m.Head {
		p.printf("%s HEAD is at %s, and was at %s; it stays (--head puts it back)\n", p.yellow("note:"), h.From, h.To)
	}
	for _, w := range m.Warnings {
		p.printf("%s %s\n", p.yellow("warning:"), clean(w))
	}
}

func (h head) String() string {
	switch {
	case h.Ref == "" && h.ID == "":
		return "nothing"
	case h.Ref == "":
		return fmt.Sprintf("%.12s", h.ID)
	case h.ID == "":
		return clean(strings.TrimPrefix(h.Ref, "refs/heads/")) + " (no commit yet)"
	}
	return fmt.Sprintf("%s %.12s", clean(strings.TrimPrefix(h.Ref, "refs/heads/")), h.ID)
}

// finish answers with what a move did, or turns down what it cannot do.
func (c *console) finish(r *timeline.Result, err error) error {
	if err != nil {
		return err
	}
	return c.answer(newMoved(r))
}

// mover is what undo and redo have in common.
func (c *console) mover(verb, usage, description string, move func(*retcon.Workspace, *cli.Context, retcon.MoveOptions) (*timeline.Result, error)) *cli.Command {
	return &cli.Command{
		Name: verb, Usage: usage, Category: "moves",
		ArgsUsage:   "[<operation>]",
		Flags:       moveFlags(),
		Description: description,
		Action: func(ctx *cli.Context) error {
			o := retcon.MoveOptions{
				DryRun: ctx.Bool("dry-run"), RequestID: ctx.String("request-id"), Reason: ctx.String("reason"),
				Steal: ctx.Bool("steal"), Confirm: c.ask(ctx.Bool("yes")),
			}
			var err error
			if o.Conflicts, err = policy(ctx); err != nil {
				return err
			}
			if o.Op, err = operation(ctx.Args().First()); err != nil {
				return err
			}
			return c.use(ctx.Context, retcon.Options{}, func(w *retcon.Workspace) error {
				return c.finish(move(w, ctx, o))
			})
		},
	}
}
