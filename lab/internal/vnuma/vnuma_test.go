package vnuma

import (
	"maps"
	"reflect"
	"slices"
	"testing"
)

var paperHost = Host{NumaNodes: 2, CoresPerNode: 16, ThreadsPerCore: 2}

func TestStoredKeysFreezeTheLayoutOfTheFirstPowerOn(t *testing.T) {
	release := Release{7, 0}
	vm := VM{VCPUs: 32, CoresPerSocket: 1, Hardware: 17}
	first := Decide(release, ReadingFollow, paperHost, vm)
	vm.ExtraConfig = Store(release, vm, first)
	if want := map[string]string{AutosizeCookie: "320012", AutosizeMax: "16"}; !maps.Equal(vm.ExtraConfig, want) {
		t.Fatalf("stored %v, want %v", vm.ExtraConfig, want)
	}
	larger := Host{NumaNodes: 2, CoresPerNode: 32, ThreadsPerCore: 2}
	if second := Decide(release, ReadingFollow, larger, vm); !slices.Equal(second.Sizes, []int{16, 16}) {
		t.Errorf("on a larger host: %v, want the stored 16/16", second.Sizes)
	}
	vm.VCPUs = 24
	if third := Decide(release, ReadingFollow, larger, vm); !slices.Equal(third.Sizes, []int{24}) {
		t.Errorf("after a change of the vCPU count: %v, want 24", third.Sizes)
	}
}

func TestNothingIsStoredWhenESXiDidNotSizeTheNodes(t *testing.T) {
	vm := VM{VCPUs: 16, CoresPerSocket: 4, Hardware: 20, CoresPerNumaNode: 4}
	layout := Decide(Release{8, 0}, ReadingFollow, paperHost, vm)
	if keys := Store(Release{8, 0}, vm, layout); keys != nil {
		t.Errorf("stored %v after a manual size", keys)
	}
	vm = VM{VCPUs: 16, CoresPerSocket: 1, Hardware: 11}
	layout = Decide(Release{6, 0}, ReadingFollow, paperHost, vm)
	if keys := Store(Release{6, 0}, vm, layout); keys != nil {
		t.Errorf("stored %v on 6.0", keys)
	}
}

func TestAutomaticCoresPerSocketBecomesTheNodeSize(t *testing.T) {
	for vcpus, want := range map[int]int{16: 16, 32: 16, 24: 12, 17: 1} {
		layout := Decide(Release{8, 0}, ReadingFollow, paperHost, VM{VCPUs: vcpus, AutoCoresPerSocket: true, Hardware: 20})
		if layout.CoresPerSocket != want {
			t.Errorf("%d vCPUs: %d cores per socket, want %d", vcpus, layout.CoresPerSocket, want)
		}
	}
}

func TestPlacementFollowsAffinityElseLoad(t *testing.T) {
	cpus := [][]int{numbers(0, 32), numbers(32, 64)}
	cases := []struct {
		name     string
		sizes    []int
		affinity []int32
		load     []int
		allowed  []int
		want     []int
	}{
		{"balanced", []int{4, 4, 4, 4}, nil, []int{0, 0}, nil, []int{0, 1, 0, 1}},
		{"away from a busy node", []int{8}, nil, []int{16, 0}, nil, []int{1}},
		{"kept on node 1 by numa.nodeAffinity", []int{4, 4}, nil, []int{0, 16}, []int{1}, []int{1, 1}},
		{"pinned to node 1", []int{2, 2}, []int32{32, 34, 36, 38}, []int{0, 0}, nil, []int{1, 1}},
		{"pinned across both", []int{2, 2}, []int32{34, 0, 32, 2}, []int{0, 0}, []int{0}, []int{0, 1}},
	}
	for _, c := range cases {
		if got := Place(c.sizes, c.affinity, cpus, c.load, c.allowed); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestVCPUsAreNumberedNodeByNode(t *testing.T) {
	if got := VCPUs([]int{2, 1}); !reflect.DeepEqual(got, [][]int{{0, 1}, {2}}) {
		t.Errorf("got %v", got)
	}
}

func TestReleaseText(t *testing.T) {
	release, err := ParseRelease("6.5.0")
	if err != nil || release != (Release{6, 5}) || !release.AtLeast(6, 0) || release.AtLeast(7, 0) {
		t.Errorf("6.5.0 read as %v, %v", release, err)
	}
	for _, bad := range []string{"", "6", "six.five"} {
		if _, err := ParseRelease(bad); err == nil {
			t.Errorf("%q accepted", bad)
		}
	}
}

func numbers(from, to int) []int {
	var all []int
	for n := from; n < to; n++ {
		all = append(all, n)
	}
	return all
}
