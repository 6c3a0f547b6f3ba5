package cluster

import (
	"fmt"
	"hash/fnv"
	"net"
	"slices"
	"strconv"
	"strings"
)

// Place is a task's place among those that a launcher has started.
type Place struct {
	// Launcher is slurm, openmpi, mpich, torchrun or kubernetes.
	Launcher   string
	Rank, Size int
	// LocalRank counts on this host; -1: unknown.
	LocalRank int
	// Job distinguishes the launcher's jobs; empty: not known.
	Job string
	// Master is where the task of rank 0 can listen, host:port; empty: not known.
	Master string
	// OneHost: all tasks are on this host, as far as is known.
	OneHost bool
	// CPUs that every task was given; 0: not known.
	CPUs int
}

// Kubernetes is the launcher that starts a task again, or another in its place, unless it has ended well.
const Kubernetes = "kubernetes"

// Launchers are the names that Environment takes, beside auto and none.
var Launchers = []string{"slurm", "openmpi", "mpich", "torchrun", "kubernetes"}

// SizeVariable and MasterVariable say what a Kubernetes indexed Job does not: how
// many tasks there are, and where the first one listens.
const SizeVariable, MasterVariable = "STARLING_SIZE", "STARLING_MASTER"

// Environment reads this task's place from the variables that launchers set; nil:
// no launcher has started this process, or it is alone. One launcher may have been started
// by another, as torchrun by srun; then the inner one counts. only is the launcher to
// listen to, auto or none.
func Environment(getenv func(string) string, only string) (*Place, error) {
	readers := []func(variables) (*Place, error){variables.slurm, variables.openMPI, variables.mpich,
		variables.torchrun, variables.kubernetes}
	var found []*Place
	if only == "none" {
		return nil, nil
	}
	if only != "auto" && !slices.Contains(Launchers, only) {
		return nil, fmt.Errorf("launcher %q is none of auto, none, %s", only, strings.Join(Launchers, ", "))
	}
	for i, read := range readers {
		if only != "auto" && only != Launchers[i] {
			continue
		}
		p, err := read(variables{getenv, only != "auto"})
		if err != nil {
			return nil, err
		}
		if p != nil {
			found = append(found, p)
		}
	}
	p, err := innermost(found, getenv)
	if err != nil || p == nil || p.Size == 1 {
		return nil, err
	}
	return p, nil
}

// innermost is the launcher that started this very process. Open MPI and MPICH start
// their daemons with srun, and torchrun's agents are started by any, never the other
// way round. But a user who exports RANK and WORLD_SIZE by hand, without torchrun, means
// the same tasks.
func innermost(found []*Place, getenv func(string) string) (*Place, error) {
	if len(found) == 0 {
		return nil, nil
	}
	p := found[len(found)-1]
	for _, o := range found[:len(found)-1] {
		same := o.Rank == p.Rank && o.Size == p.Size
		switch {
		case p.Launcher == "torchrun" && getenv("TORCHELASTIC_RUN_ID") == "" && !same:
			return nil, fmt.Errorf("RANK is %d of WORLD_SIZE %d, but %s says %d of %d, and torchrun did not set "+
				"them; unset them, or choose with --launcher", p.Rank, p.Size, o.Launcher, o.Rank, o.Size)
		case p.Launcher == Kubernetes: // a Job may run mpirun; mpirun starts no Jobs
			p = o
		// srun --mpi=pmi2 speaks as both, and more of it as itself
		case p.Launcher == "mpich" && o.Launcher == "slurm" && same:
			p = o
		}
	}
	return p, nil
}

// variables are the environment, as asked for one launcher.
type variables struct {
	get  func(string) string
	must bool // the user named the launcher
}

// ranks reads a rank and a size, which come together or not at all.
func (v variables) ranks(launcher, rank, size string) (*Place, error) {
	r, n := v.get(rank), v.get(size)
	switch {
	case r == "" && n == "" && v.must:
		return nil, fmt.Errorf("launcher %s: %s and %s are not set; was this task started by it?", launcher, rank, size)
	case r == "" && n == "":
		return nil, nil
	case r == "":
		return nil, fmt.Errorf("%s is %s, but %s is not set", size, n, rank)
	case n == "":
		return nil, fmt.Errorf("%s is %s, but %s is not set", rank, r, size)
	}
	p := &Place{Launcher: launcher, LocalRank: -1}
	var err error
	if p.Size, err = whole(size, n, 1, maxTasks); err != nil {
		return nil, err
	}
	if p.Rank, err = whole(rank, r, 0, p.Size-1); err != nil {
		return nil, fmt.Errorf("%w, as %s is %d", err, size, p.Size)
	}
	return p, nil
}

const maxTasks = 1 << 15

func whole(name, text string, low, high int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > high {
		return 0, fmt.Errorf("%s is %.40q, expected a number from %d to %d", name, text, low, high)
	}
	return n, nil
}

// local reads the rank and the number of tasks on this host, where they are given.
func (v variables) local(p *Place, rank, size string) (err error) {
	if text := v.get(rank); text != "" {
		if p.LocalRank, err = whole(rank, text, 0, p.Size-1); err != nil {
			return err
		}
	}
	if text := v.get(size); text != "" {
		n, err := whole(size, text, 1, p.Size)
		if err != nil {
			return err
		}
		if p.LocalRank >= n {
			return fmt.Errorf("%s is %d, but %s is %d", rank, p.LocalRank, size, n)
		}
		p.OneHost = n == p.Size
	}
	return nil
}

// slurm: the tasks of srun. A batch script has a rank and a size too, but no step of
// its own: it is not one of several.
func (v variables) slurm() (*Place, error) {
	if v.get("SLURM_STEP_ID") == "" && !v.must {
		return nil, nil
	}
	size := "SLURM_STEP_NUM_TASKS" // in old versions SLURM_NTASKS counts the allocation
	if v.get(size) == "" {
		size = "SLURM_NTASKS"
	}
	if v.get("SLURM_PROCID") == "" && !v.must { // sattach, or a shell that has lost its task
		return nil, nil
	}
	p, err := v.ranks("slurm", "SLURM_PROCID", size)
	if p == nil || err != nil {
		return nil, err
	}
	if err := v.local(p, "SLURM_LOCALID", ""); err != nil {
		return nil, err
	}
	if id := v.get("SLURM_JOB_ID"); id != "" {
		p.Job = plain("slurm-" + id + "." + v.get("SLURM_STEP_ID"))
	}
	p.OneHost = v.get("SLURM_STEP_NUM_NODES") == "1" || v.get("SLURM_JOB_NUM_NODES") == "1"
	nodes := v.get("SLURM_STEP_NODELIST")
	if nodes == "" {
		nodes = v.get("SLURM_JOB_NODELIST")
	}
	if first := firstHost(nodes); first != "" && p.Job != "" {
		p.Master = net.JoinHostPort(first, strconv.Itoa(portOf(p.Job)))
	}
	if text := v.get("SLURM_CPUS_PER_TASK"); text != "" {
		if p.CPUs, err = whole("SLURM_CPUS_PER_TASK", text, 1, 1<<16); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// portOf is a port that the tasks of a job agree on without messages: below those that
// systems assign, and seldom that of another job.
func portOf(job string) int {
	h := fnv.New32a()
	h.Write([]byte(job))
	return 16384 + int(h.Sum32()%16384)
}

// firstHost is the first of Slurm's node list: node[01-04,7],other is node01.
func firstHost(list string) string {
	var host strings.Builder
	for i := 0; i < len(list) && list[i] != ','; i++ {
		if list[i] != '[' {
			host.WriteByte(list[i])
			continue
		}
		end := strings.IndexByte(list[i:], ']')
		if end < 0 {
			return ""
		}
		number := list[i+1 : i+end]
		if cut := strings.IndexAny(number, ",-"); cut >= 0 {
			number = number[:cut]
		}
		host.WriteString(number)
		i += end
	}
	return host.String()
}

// openMPI: the tasks of its mpirun.
func (v variables) openMPI() (*Place, error) {
	p, err := v.ranks("openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")
	if p == nil || err != nil {
		return nil, err
	}
	for _, name := range []string{"OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE"} {
		if id := v.get(name); id != "" && p.Job == "" {
			p.Job = plain("openmpi-" + id)
		}
	}
	return p, v.local(p, "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE")
}

// mpich: the tasks of its mpiexec, and of others that speak PMI.
func (v variables) mpich() (*Place, error) {
	p, err := v.ranks("mpich", "PMI_RANK", "PMI_SIZE")
	if p == nil || err != nil {
		return nil, err
	}
	return p, v.local(p, "MPI_LOCALRANKID", "MPI_LOCALNRANKS")
}

// torchrun: its workers, and those of others that set what PyTorch reads. RANK alone
// is a name that anybody may use.
func (v variables) torchrun() (*Place, error) {
	addr, port := v.get("MASTER_ADDR"), v.get("MASTER_PORT")
	if !v.must && (v.get("RANK") == "" || v.get("WORLD_SIZE") == "" || addr == "") {
		return nil, nil
	}
	p, err := v.ranks("torchrun", "RANK", "WORLD_SIZE")
	if p == nil || err != nil {
		return nil, err
	}
	if addr != "" && port != "" {
		n, err := whole("MASTER_PORT", port, 1, 65535)
		if err != nil {
			return nil, err
		}
		if v.get("TORCHELASTIC_USE_AGENT_STORE") == "True" { // torchrun itself listens there
			n = portOf(fmt.Sprint(n))
		}
		p.Master = net.JoinHostPort(addr, strconv.Itoa(n))
	}
	if id := v.get("TORCHELASTIC_RUN_ID"); id != "" && id != "none" {
		p.Job = plain("torchrun-" + id + "." + v.get("TORCHELASTIC_RESTART_COUNT"))
	}
	return p, v.local(p, "LOCAL_RANK", "LOCAL_WORLD_SIZE")
}

// kubernetes: the pods of an indexed Job. How many there are must be given in the
// manifest, as STARLING_SIZE.
func (v variables) kubernetes() (*Place, error) {
	if v.get("JOB_COMPLETION_INDEX") == "" && !v.must || v.get(SizeVariable) == "" && v.get(MasterVariable) == "" &&
		!v.must {
		return nil, nil
	}
	p, err := v.ranks(Kubernetes, "JOB_COMPLETION_INDEX", SizeVariable)
	if p == nil || err != nil {
		return nil, err
	}
	if p.Master = v.get(MasterVariable); p.Master != "" {
		if _, _, err := net.SplitHostPort(p.Master); err != nil {
			return nil, fmt.Errorf("%s is %.80q, expected host:port", MasterVariable, p.Master)
		}
	}
	return p, nil
}

// plain makes a name that can be a file's.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._", r) {
			return r
		}
		return '_'
	}, name)
}
