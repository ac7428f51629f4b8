package vnuma

import "slices"

// VCPUs numbers the vCPUs of each node in order: sizes 2, 2 become {0 1} {2 3}.
func VCPUs(sizes []int) [][]int {
	nodes := make([][]int, len(sizes))
	next := 0
	for i, size := range sizes {
		for range size {
			nodes[i] = append(nodes[i], next)
			next++
		}
	}
	return nodes
}

// Place chooses the physical NUMA node for each vNUMA node. With CPU affinity it is the one with the
// node's share of the affinity set; without, every node goes to the least loaded one of those
// allowed (none named: all). cpus are the logical CPUs of each physical node; load the vCPUs already
// placed there.
func Place(sizes []int, affinity []int32, cpus [][]int, load, allowed []int) []int {
	if len(affinity) > 0 {
		return placeByAffinity(sizes, affinity, cpus)
	}
	placed := make([]int, len(sizes))
	load = slices.Clone(load)
	for i, size := range sizes {
		placed[i] = leastLoaded(load, allowed)
		load[placed[i]] += size
	}
	return placed
}

func leastLoaded(load, allowed []int) int {
	best := -1
	for node := range load {
		if len(allowed) > 0 && !slices.Contains(allowed, node) {
			continue
		}
		if best < 0 || load[node] < load[best] {
			best = node
		}
	}
	return max(best, 0)
}

func placeByAffinity(sizes []int, affinity []int32, cpus [][]int) []int {
	sorted := slices.Sorted(slices.Values(affinity))
	total := 0
	for _, size := range sizes {
		total += size
	}
	placed := make([]int, len(sizes))
	first := 0
	for i, size := range sizes {
		share := sorted[first*len(sorted)/total : (first+size)*len(sorted)/total]
		placed[i] = mostOf(share, cpus)
		first += size
	}
	return placed
}

func mostOf(share []int32, cpus [][]int) int {
	best, most := 0, -1
	for node, ids := range cpus {
		count := 0
		for _, cpu := range share {
			if slices.Contains(ids, int(cpu)) {
				count++
			}
		}
		if count > most {
			best, most = node, count
		}
	}
	return best
}
