package peer

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/retcon-dev/retcon/scripts/bench/internal/bench"
)

// JJ is jj, at work in one folder.
type JJ struct {
	bin string
	dir string
	env []string
}

// FindJJ returns the jj whose binary is bin, or that is on PATH. The error says
// where one can be had.
func FindJJ(bin, home string) (JJ, error) {
	if bin == "" {
		found, err := exec.LookPath("jj")
		if err != nil {
			return JJ{}, fmt.Errorf("no jj on PATH; npm install --prefix DIR @smithers-orchestrator/jj-linux-x64, then --jj DIR/node_modules/@smithers-orchestrator/jj-linux-x64/bin/jj")
		}
		bin = found
	}
	config := filepath.Join(home, "jj.toml")
	text := "[user]\nname = \"bench\"\nemail = \"bench@example.invalid\"\n[ui]\npaginate = \"never\"\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return JJ{}, err
	}
	j := JJ{bin: bin, env: append(Env(home), "JJ_CONFIG="+config)}
	if _, _, err := j.Run(context.Background(), "version"); err != nil {
		return JJ{}, err
	}
	return j, nil
}

// In returns jj at work in another folder.
func (j JJ) In(dir string) JJ {
	j.dir = dir
	return j
}

// Init makes the folder a repository of jj's alone, and commits what is in it:
// otherwise every status would list the whole tree as new.
func (j JJ) Init(ctx context.Context) error {
	if _, _, err := j.Run(ctx, "git", "init", "--no-colocate"); err != nil {
		return err
	}
	_, _, err := j.Run(ctx, "commit", "-m", "base")
	return err
}

// Run runs one jj command.
func (j JJ) Run(ctx context.Context, args ...string) (string, bench.Usage, error) {
	out, u, err := bench.Command{Dir: j.dir, Env: j.env, Args: append([]string{j.bin}, args...)}.Run(ctx)
	return strings.TrimSpace(string(out)), u, err
}
