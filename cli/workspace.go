package cli

import (
	"context"
	"os"
	"path/filepath"
	"strconv"

	"github.com/retcon-dev/retcon"
	"github.com/retcon-dev/retcon/agent"
)

// use opens the workspace the command line is about, hands it to do, and closes
// it. GIT_* variables have no say in which one that is.
func (c *console) use(ctx context.Context, o retcon.Options, do func(*retcon.Workspace) error) (err error) {
	w, err := c.open(ctx, o)
	if err != nil {
		return err
	}
	defer func() {
		if closed := w.Close(); err == nil {
			err = closed
		}
	}()
	return do(w)
}

// open opens the workspace with the surroundings of this command line, and with
// the configuration that lies in its store.
func (c *console) open(ctx context.Context, o retcon.Options) (*retcon.Workspace, error) {
	if c.Dir == "" {
		return nil, &failure{Code: "NOT_FOUND", Message: "the current directory is gone", Hints: []string{"cd /"}}
	}
	o.Dir, o.Home, o.Now = c.Dir, c.Home, c.Now
	if o.Env == nil {
		o.Env = c.Environ()
	}
	o.XDGConfigHome = c.Getenv("XDG_CONFIG_HOME")
	o.SystemConfig = systemConfig
	o.OwnRun = c.Getenv("RETCON_RUN") // set for the commands and agents of a run
	o.Above = above(os.Getppid())
	for _, s := range agent.Sessions(c.Getenv) {
		o.OwnSessions = append(o.OwnSessions, retcon.OwnSession(s))
	}
	o.AllowWide = o.AllowWide || c.hasStore() // whoever made it was asked to
	o.Progress = c.work.stage
	o.NoTape = c.Getenv("RETCON_TAPE") == "0"
	if text := c.Getenv("RETCON_TAPE_MAX_BYTES"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n <= 0 {
			return nil, misuse("RETCON_TAPE_MAX_BYTES=" + name(text) + " is no number of bytes")
		}
		o.TapeMax = n
	}
	o.State = c.stateFolder()
	o.Parse = parseProject
	if o.Load == nil {
		o.Load = loadConfig
	}
	return retcon.Open(ctx, o)
}

// systemConfig is where git looks for the configuration of the machine.
const systemConfig = "/etc/gitconfig"

// there says whether a path, relative to the directory of this command line, is
// on disk.
func (c *console) there(path string) bool {
	if !filepath.IsAbs(path) {
		path = filepath.Join(c.Dir, path)
	}
	_, err := os.Lstat(path)
	return err == nil
}
