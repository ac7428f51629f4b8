package vcenter

import (
	"maps"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// performance answers QueryPerf as a quiet host would: the simulator's series are those of a busy
// host, and would show a wait for processors in every boot.
type performance struct {
	*simulator.PerformanceManager
	server *Server
}

// quietSeries are values of 20 seconds. The simulator's encoding loses zeros, so counters that are not
// listed here have no sample.
var quietSeries = map[string]int64{
	"cpu.ready.summation":  40, // ms, of all vCPUs together
	"cpu.costop.summation": 1,
	"cpu.usage.average":    620, // hundredths of a percent
	"mem.usage.average":    4100,
}

// percentOfVCPU is one percent of a vCPU's time, in ms summed over all of a VM's vCPUs in 20 seconds.
func percentOfVCPU(percent float64, vcpus int) int64 {
	return int64(percent / 100 * 20_000 * float64(vcpus))
}

// series are the quiet ones, with the scenario's values for the VM.
func (p *performance) series(entity types.ManagedObjectReference) map[string]int64 {
	m, ok := p.server.machines[entity]
	if !ok {
		return quietSeries
	}
	own, around, vcpus := maps.Clone(quietSeries), m.scenario.Around, int(m.Config.Hardware.NumCPU)
	if around.CPUReadyPercent > 0 {
		own["cpu.ready.summation"] = percentOfVCPU(around.CPUReadyPercent, vcpus)
	}
	if around.CoStopPercent > 0 {
		own["cpu.costop.summation"] = percentOfVCPU(around.CoStopPercent, vcpus)
	}
	return own
}

// QueryPerf keeps the simulator's shape and times and replaces its values.
func (p *performance) QueryPerf(ctx *simulator.Context, request *types.QueryPerf) soap.HasFault {
	body := p.PerformanceManager.QueryPerf(ctx, request)
	answer, ok := body.(*methods.QueryPerfBody)
	if !ok || answer.Res == nil {
		return body
	}
	names := map[int32]string{}
	for _, c := range p.PerfCounter {
		names[c.Key] = c.GroupInfo.GetElementDescription().Key + "." + c.NameInfo.GetElementDescription().Key + "." + string(c.RollupType)
	}
	for _, entity := range answer.Res.Returnval {
		metrics, ok := entity.(*types.PerfEntityMetric)
		if !ok {
			continue
		}
		values := p.series(metrics.Entity)
		for _, series := range metrics.Value {
			if ints, ok := series.(*types.PerfMetricIntSeries); ok {
				for n := range ints.Value {
					ints.Value[n] = values[names[ints.Id.CounterId]]
				}
			}
		}
	}
	return body
}
