package sideeffect

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// common are the variables that every command gets: where programs, files and
// people are, and how text and time are written. None is a secret.
var common = []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR"}

// Environment is what of an environment any command may see. Everything else it
// gets by name: see [Compensation.Env].
func Environment(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return !slices.Contains(common, name) && !strings.HasPrefix(name, "LC_")
	})
}

// own is the beginning of the names of our variables.
const own = "RETCON_"

var variableName = pattern(`^[A-Za-z_][A-Za-z0-9_]*$`)

// checkEnv finds names that are none, and ours: they say who is called and what
// for, and are not handed on.
func checkEnv(names []string) error {
	for _, name := range names {
		switch {
		case !variableName().MatchString(name):
			return fmt.Errorf("env %q is not the name of a variable", name)
		case strings.HasPrefix(name, own):
			return errors.New("env: the variables of retcon itself are not handed on")
		}
	}
	return nil
}

// environment is that of one command: what all commands get, the variables that
// its compensation names, and which effect it is called for.
func (r *resolution) environment(names []string) []string {
	env := slices.Clone(r.Env)
	for _, name := range names {
		if value, ok := variable(r.Named, name); ok {
			env = append(env, name+"="+value)
		}
	}
	env = append(env, r.About...)
	if r.effect.Seq != 0 {
		env = append(env, own+"EFFECT="+strconv.FormatInt(r.effect.Seq, 10))
	}
	if r.effect.Key != "" {
		env = append(env, own+"EFFECT_KEY="+r.effect.Key)
	}
	return env
}

// network are the variables by which a program finds its way out and its
// settings.
const network = "HTTPS_PROXY HTTP_PROXY ALL_PROXY NO_PROXY https_proxy http_proxy all_proxy no_proxy SSL_CERT_FILE SSL_CERT_DIR XDG_CONFIG_HOME"

// amazon are those by which its tools know whom they work for, and where.
const amazon = "AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AWS_PROFILE AWS_DEFAULT_PROFILE AWS_REGION AWS_DEFAULT_REGION " +
	"AWS_CONFIG_FILE AWS_SHARED_CREDENTIALS_FILE AWS_CA_BUNDLE AWS_ENDPOINT_URL AWS_ENDPOINT_URL_S3 AWS_ROLE_ARN AWS_ROLE_SESSION_NAME " +
	"AWS_WEB_IDENTITY_TOKEN_FILE AWS_CONTAINER_CREDENTIALS_RELATIVE_URI AWS_CONTAINER_CREDENTIALS_FULL_URI AWS_CONTAINER_AUTHORIZATION_TOKEN"

// cluster are those by which a cluster is found. Its configuration may call the
// tool of the cloud it stands in.
const cluster = "KUBECONFIG GOOGLE_APPLICATION_CREDENTIALS CLOUDSDK_CONFIG AZURE_CONFIG_DIR " + amazon

// needs are the variables that the programs of our own compensations work with.
var needs = map[string]string{
	"gh":      "GH_TOKEN GITHUB_TOKEN GH_ENTERPRISE_TOKEN GITHUB_ENTERPRISE_TOKEN GH_HOST GH_CONFIG_DIR DBUS_SESSION_BUS_ADDRESS",
	"glab":    "GITLAB_TOKEN GITLAB_ACCESS_TOKEN OAUTH_TOKEN GITLAB_HOST GITLAB_URI GL_HOST GLAB_CONFIG_DIR DBUS_SESSION_BUS_ADDRESS",
	"aws":     amazon,
	"kubectl": cluster,
	"oc":      cluster,
	"helm":    "HELM_CONFIG_HOME HELM_CACHE_HOME HELM_DATA_HOME HELM_DRIVER " + cluster,
	"cargo":   "CARGO_HOME CARGO_REGISTRY_TOKEN RUSTUP_HOME RUSTUP_TOOLCHAIN",
}

// needed are the variables that a compensation of ours names for its program.
func needed(program string) []string {
	if needs[program] == "" {
		return nil
	}
	return strings.Fields(needs[program] + " " + network)
}
