// Command starling trains graph neural networks on the machines you have.
//
// Each subcommand has a file of its own. Exit status: 0 for success, 2 for a
// user's mistake, 130 after Ctrl-C (with all saved), 1 for everything else.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"starling/run"
	"starling/spec"
)

func main() {
	if len(os.Args) < 2 || os.Args[1] != "serve" { // which goes on
		run.ExitOnFault()
	}
	err := protected(func() error { return root(os.Args[1:]).ExecuteContext(interruptible()) })
	if err == nil {
		err = stdout.err
	}
	if err != nil && !errors.Is(err, run.ErrInterrupted) {
		announce(run.ColorsOf(os.Stderr).Red("starling:") + " " + run.Message(err))
	}
	os.Exit(run.Status(err))
}

// protected makes an error of a panic: a fault of the program must not end with the exit status of
// a user's mistake, as Go's own does.
func protected(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(os.Stderr, "%s\n", debug.Stack())
			err = fmt.Errorf("internal error: %v", p)
		}
	}()
	return do()
}

// interruptible ends the context at the first Ctrl-C, so that the epoch is finished and
// everything is saved, and the process at the second. A launcher's SIGTERM has the effect of a
// Ctrl-C, and so has a terminal that is closed, unless under nohup. But only a second Ctrl-C
// ends the process: Slurm signals every process of a task, and the task then signals its own
// worker too.
func interruptible() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	withParent(cancel)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		<-signals
		announce("starling: stopping as soon as what is under way is finished; press Ctrl-C again to stop at once")
		cancel()
		for s := range signals {
			if s == os.Interrupt {
				os.Exit(run.Interrupted)
			}
		}
	}()
	return ctx
}

// commands are in the order of use.
var commands = []struct {
	name string
	make func() *cobra.Command
}{
	{"demo", demoCommand},
	{"get", getCommand},
	{"import", importCommand},
	{"generate", generateCommand},
	{"info", infoCommand},
	{"partition", partitionCommand},
	{"train", trainCommand},
	{"predict", predictCommand},
	{"explain", explainCommand},
	{"export", exportCommand},
	{"serve", serveCommand},
	{"compare", compareCommand},
	{"tune", tuneCommand},
	{"plan", planCommand},
	{"worker", workerCommand},
	{"switch", switchCommand},
	{"simulate", simulateCommand},
	{"paths", pathsCommand},
	{"top", topCommand},
	{"view", viewCommand},
	{"charts", chartsCommand},
	{"certs", certsCommand},
	{"devices", devicesCommand},
	{"bench", benchCommand},
	{"version", versionCommand},
}

// add adds the command that is called to c, or all of them if none is, as for help: making the
// flags of all takes as long as the rest of a short command.
func add(c *cobra.Command, args []string) {
	for _, one := range commands {
		if len(args) > 0 && args[0] == one.name {
			c.AddCommand(one.make())
			c.CompletionOptions.DisableDefaultCmd = true
			return
		}
	}
	for _, one := range commands {
		c.AddCommand(one.make())
	}
	c.Version = version()
}

// root is the command line for args.
func root(args []string) *cobra.Command {
	c := &cobra.Command{
		Use:   "starling",
		Short: "Train graph neural networks on the machines you have",
		Long: `Starling trains graph neural networks: one binary, no other set-up.

Exit status: 0 for success, 2 for a mistake in flags or files, 130 when stopped
by Ctrl-C (with everything saved), 1 for everything else.`,
		Example: `  starling demo
  starling generate sbm --nodes 100000 --edges 2000000 --out graph
  starling train graph --model sage --epochs 100 --json result.json`,
		SilenceUsage:      true,
		SilenceErrors:     true,
		Args:              cobra.ArbitraryArgs,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error { return spec.CheckTogether(c.Flags()) },
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(c, args[0])
			}
			return c.Help()
		},
	}
	c.SetOut(text)
	c.SetFlagErrorFunc(flagError)
	c.SetHelpCommand(helpCommand())
	cobra.EnableCommandSorting = false
	cobra.AddTemplateFunc("byTopic", byTopic)
	const flags = "Flags:\n{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}"
	c.SetUsageTemplate(strings.Replace(c.UsageTemplate(), flags, "{{byTopic .LocalFlags}}", 1))
	c.SetVersionTemplate("{{.Version}}\n")
	add(c, args)
	c.SetGlobalNormalizationFunc(spelling)
	return c
}

func unknownCommand(c *cobra.Command, name string) error {
	var known []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			known = append(known, sub.Name())
		}
	}
	return spec.Mistake("command", fmt.Sprintf("%q", name), "one of "+strings.Join(known, ", "),
		run.Suggest(name, known))
}

// helpCommand shows a command's help; cobra's own takes any word for a command.
func helpCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show what a command does, and its flags",
		RunE: func(c *cobra.Command, args []string) error {
			of, rest, err := c.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(of, rest[0])
			}
			if asJSON {
				return writeHelp(of)
			}
			return of.Help()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write commands and flags as one JSON object to standard output")
	return c
}

// byTopic is the help of flags: the command's own, then the flags of a run's settings
// under their headings.
func byTopic(all *pflag.FlagSet) string {
	width := 110
	if w := run.Width(os.Stdout); w > 0 {
		width = min(width, w)
	}
	topics, of := []string{"Flags"}, map[string]*pflag.FlagSet{}
	all.VisitAll(func(f *pflag.Flag) {
		topic := topics[0]
		if a := f.Annotations[spec.FlagTopic]; len(a) > 0 {
			topic = a[0]
		}
		if of[topic] == nil {
			of[topic] = pflag.NewFlagSet("", pflag.ContinueOnError)
			of[topic].SortFlags = all.SortFlags
			if topic != topics[0] {
				topics = append(topics, topic)
			}
		}
		of[topic].AddFlag(f)
	})
	var list []string
	for _, t := range topics {
		if of[t] != nil && of[t].HasAvailableFlags() {
			list = append(list, t+":\n"+strings.TrimRight(of[t].FlagUsagesWrapped(width), "\n"))
		}
	}
	return strings.Join(list, "\n\n")
}

// flagError is an error of pflag as a user's mistake, with a suggestion.
func flagError(c *cobra.Command, err error) error {
	var absent *pflag.NotExistError
	if errors.As(err, &absent) {
		var known []string
		c.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		name := absent.GetSpecifiedName()
		fix := strings.Replace(run.Suggest(name, known), "did you mean ", "did you mean --", 1)
		if fix == "" {
			fix = "see " + c.CommandPath() + " --help"
		}
		return spec.Mistake("flag", "--"+name, "a flag of "+c.CommandPath(), fix)
	}
	var wrong *pflag.InvalidValueError
	if errors.As(err, &wrong) {
		return spec.FlagMistake(wrong.GetFlag(), wrong.GetValue(), err)
	}
	var lacking *pflag.ValueRequiredError
	if errors.As(err, &lacking) {
		return spec.Mistake("--"+lacking.GetSpecifiedName(), "nothing after it", "a value", "see "+c.CommandPath()+
			" --help")
	}
	return spec.Mistake(c.CommandPath(), spec.Sentence(err), "", "see "+c.CommandPath()+" --help")
}

// arguments checks their number; want says what they should be.
func arguments(least, most int, want string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) >= least && len(args) <= most {
			return nil
		}
		return spec.Mistake(c.CommandPath(), run.Counted(len(args), "argument"), want, "see "+c.CommandPath()+" --help")
	}
}
