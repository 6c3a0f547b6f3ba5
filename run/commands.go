package run

import (
	"starling/fetch"
	"starling/inspect"
	"starling/internal/version"
	"starling/plan"
	"starling/predict"
	"starling/simulate"
	"starling/supervise"
	"starling/watch"
	"starling/worker"
)

// Commands see this room and not those below it. What they call there, as it is, is named here; each has its
// comment in its own room.

// What the program was built from; what watches a run.
var Version, Commit = version.Name, version.Commit

type Top = watch.Top

// starling get.
type GetOptions = fetch.Options

var Get, PublicNames, AboutPublic = fetch.Get, fetch.Names, fetch.About

// starling worker.
type WorkerSpec = worker.Spec

var Work = worker.Run

// starling plan.
type (
	PlanOptions   = plan.Options
	WhatIfOptions = plan.WhatIfOptions
)

var (
	DefaultPlan = plan.Default
	PlanChoices = plan.Choose
	PlanWhatIf  = plan.WhatIf
	JoinLinks   = plan.JoinLinks
)

// starling info, devices and paths.
type (
	LocalityOptions = inspect.LocalityOptions
	ProbeOptions    = inspect.ProbeOptions
)

var (
	Describe      = inspect.Describe
	DescribeParts = inspect.DescribeParts
	Devices       = inspect.Devices
	ProbePaths    = inspect.ProbePaths
	ProbePeer     = inspect.ProbePeer
	AnswerProbe   = inspect.AnswerProbe
)

// starling train: its place among the tasks of a launcher, and a worker that is killed to show how it recovers.
type (
	Place = supervise.Place
	Fault = supervise.Fault
)

var PlaceOf, RankOf = supervise.PlaceOf, supervise.RankOf

// starling simulate.
type (
	SimulateOptions = simulate.Options
	LLMRow          = simulate.LLMRow
	PathsRow        = simulate.PathsRow
)

var (
	DefaultSimulate = simulate.Default
	SimulateTrain   = simulate.Train
	DefaultLLM      = simulate.DefaultLLM
	SimulateLLM     = simulate.LLM
	LLMModels       = simulate.LLMModels
	LLMSchedulers   = simulate.LLMSchedulers
	DefaultPaths    = simulate.DefaultPaths
	SimulatePaths   = simulate.Paths
	PathsCases      = simulate.PathsCases
)

// starling predict, serve and export.
type PredictOptions = predict.Options

var (
	Predict        = predict.Run
	PredictWhats   = predict.Whats
	DefaultServe   = predict.DefaultServe
	Serve          = predict.Serve
	Export         = predict.Export
	ExportFormats  = predict.Formats
	Explain        = predict.Explain
	DefaultExplain = predict.DefaultExplain
	ExplainMethods = predict.ExplainMethods
)
