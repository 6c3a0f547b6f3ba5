package cluster

import (
	"strings"
	"testing"
)

func env(text string) func(string) string {
	set := map[string]string{}
	for _, f := range strings.Fields(text) {
		name, value, _ := strings.Cut(f, "=")
		set[name] = value
	}
	return func(name string) string { return set[name] }
}

// What launchers were seen to set, in the versions that Debian 12 has.
const (
	slurmStep = "SLURM_JOB_ID=42 SLURM_STEP_ID=0 SLURM_PROCID=3 SLURM_NTASKS=4 SLURM_STEP_NUM_TASKS=4 " +
		"SLURM_LOCALID=1 SLURM_STEP_NUM_NODES=2 SLURM_STEP_NODELIST=node[01-02] "
	slurmOne = "SLURM_JOB_ID=42 SLURM_STEP_ID=1 SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_LOCALID=1 " +
		"SLURM_STEP_NUM_NODES=1 SLURM_STEP_NODELIST=vm SLURM_CPUS_PER_TASK=8 "
	slurmRun = "SLURM_JOB_ID=42 SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_LOCALID=0 SLURM_JOB_NUM_NODES=2 " +
		"SLURM_JOB_NODELIST=node[01-02] " // a batch script
	openMPI = "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=1 " +
		"OMPI_COMM_WORLD_LOCAL_SIZE=2 OMPI_MCA_ess_base_jobid=1934229505 PMIX_RANK=1 "
	mpich   = "PMI_RANK=0 PMI_SIZE=4 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=2 "
	torch   = "RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=29500 "
	elastic = "TORCHELASTIC_RUN_ID=8b34 TORCHELASTIC_RESTART_COUNT=0 TORCHELASTIC_USE_AGENT_STORE=True "
	pod     = "JOB_COMPLETION_INDEX=2 STARLING_SIZE=4 STARLING_MASTER=train-0.train:7077 "
)

func TestEnvironment(t *testing.T) {
	for _, c := range []struct {
		name, env, only string
		want            *Place
	}{
		{"no launcher", "HOME=/home", "auto", nil},
		{"slurm", slurmStep, "auto", &Place{"slurm", 3, 4, 1, "slurm-42.0", "node01:17159", false, 0}},
		{"slurm on one host", slurmOne, "auto", &Place{"slurm", 1, 2, 1, "slurm-42.1", "vm:16756", true, 8}},
		{"a batch script is no task", slurmRun, "auto", nil},
		{"a batch script that is said to be one", slurmRun, "slurm",
			&Place{"slurm", 0, 4, 0, "slurm-42.", "node01:28941", false, 0}},
		{"open mpi", openMPI, "auto", &Place{"openmpi", 1, 2, 1, "openmpi-1934229505", "", true, 0}},
		{"mpich", mpich, "auto", &Place{"mpich", 0, 4, 0, "", "", false, 0}},
		{"mpich without local ranks", "PMI_RANK=0 PMI_SIZE=4", "auto", &Place{"mpich", 0, 4, -1, "", "", false, 0}},
		{"torchrun", torch + elastic, "auto", &Place{"torchrun", 1, 2, 1, "torchrun-8b34.0", "localhost:17179", true,
			0}},
		{"as torchrun", torch, "auto", &Place{"torchrun", 1, 2, 1, "", "localhost:29500", true, 0}},
		{"kubernetes", pod, "auto", &Place{"kubernetes", 2, 4, -1, "", "train-0.train:7077", false, 0}},
		{"an index without a size belongs to another program", "JOB_COMPLETION_INDEX=2", "auto", nil},
		{"a rank that is anybody's", "RANK=1", "auto", nil},
		{"alone", "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1", "auto", nil},
		{"mpirun in slurm", slurmStep + openMPI, "auto", &Place{"openmpi", 1, 2, 1, "openmpi-1934229505", "", true, 0}},
		{"mpiexec in slurm", slurmStep + mpich, "auto", &Place{"mpich", 0, 4, 0, "", "", false, 0}},
		{"srun that speaks pmi", slurmStep + "PMI_RANK=3 PMI_SIZE=4", "auto",
			&Place{"slurm", 3, 4, 1, "slurm-42.0", "node01:17159", false, 0}},
		{"torchrun in slurm", slurmStep + torch + elastic, "auto",
			&Place{"torchrun", 1, 2, 1, "torchrun-8b34.0", "localhost:17179", true, 0}},
		{"pytorch's names for slurm's tasks", slurmOne + torch, "auto",
			&Place{"torchrun", 1, 2, 1, "", "localhost:29500", true, 0}},
		{"mpirun in a pod", pod + openMPI, "auto", &Place{"openmpi", 1, 2, 1, "openmpi-1934229505", "", true, 0}},
		{"chosen", slurmStep + openMPI, "slurm", &Place{"slurm", 3, 4, 1, "slurm-42.0", "node01:17159", false, 0}},
		{"none", slurmStep, "none", nil},
	} {
		got, err := Environment(env(c.env), c.only)
		if err != nil || (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %+v, %v; want %+v", c.name, got, err, c.want)
		}
	}
}

func TestEnvironmentContradictions(t *testing.T) {
	for _, c := range []struct{ env, only, want string }{
		{"OMPI_COMM_WORLD_RANK=1", "auto", "OMPI_COMM_WORLD_SIZE is not set"},
		{"OMPI_COMM_WORLD_SIZE=4", "auto", "OMPI_COMM_WORLD_RANK is not set"},
		{"PMI_RANK=4 PMI_SIZE=4", "auto", `PMI_RANK is "4", expected a number from 0 to 3, as PMI_SIZE is 4`},
		{"PMI_RANK=-1 PMI_SIZE=4", "auto", "from 0 to 3"},
		{"PMI_RANK=0 PMI_SIZE=0", "auto", "PMI_SIZE"},
		{"PMI_RANK=x PMI_SIZE=4", "auto", `"x"`},
		{"PMI_RANK=0 PMI_SIZE=99999999999999999999", "auto", "PMI_SIZE"},
		{"PMI_RANK=0 PMI_SIZE=4 MPI_LOCALRANKID=2 MPI_LOCALNRANKS=2", "auto",
			"MPI_LOCALRANKID is 2, but MPI_LOCALNRANKS is 2"},
		{"PMI_RANK=0 PMI_SIZE=4 MPI_LOCALNRANKS=5", "auto", "MPI_LOCALNRANKS"},
		{slurmStep + torch, "auto", "slurm says 3 of 4"},
		{torch + "MASTER_PORT=70000", "auto", "MASTER_PORT"},
		{"JOB_COMPLETION_INDEX=1 STARLING_MASTER=a:1", "auto", "STARLING_SIZE is not set"},
		{"JOB_COMPLETION_INDEX=1 STARLING_SIZE=2 STARLING_MASTER=a", "auto", "host:port"},
		{"HOME=x", "slurm", "was this task started by it?"},
		{"HOME=x", "lsf", "none of auto"},
	} {
		if p, err := Environment(env(c.env), c.only); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v; want %s", c.env, p, err, c.want)
		}
	}
}

func TestFirstHost(t *testing.T) {
	for list, want := range map[string]string{"": "", "a": "a", "a,b": "a", "n[01-03,07],g5": "n01", "n[3,1]": "n3",
		"r[1-2]n[05-06]": "r1n05", "x[1-2]-ib,y": "x1-ib", "n[1-2": ""} {
		if got := firstHost(list); got != want {
			t.Errorf("%q: %q, want %q", list, got, want)
		}
	}
}

func FuzzFirstHost(f *testing.F) {
	f.Add("n[01-03,07],g5")
	f.Add("r[1-2]n[05")
	f.Fuzz(func(t *testing.T, list string) {
		if got := firstHost(list); len(got) > len(list) || strings.ContainsAny(got, ",[") &&
			!strings.ContainsAny(list, "[") {
			t.Errorf("%q: %q", list, got)
		}
	})
}
