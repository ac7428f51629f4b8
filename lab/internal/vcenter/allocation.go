package vcenter

import "github.com/vmware/govmomi/vim25/types"

const unlimited = int64(-1)

// normalMemoryShares and normalCPUShares are what vSphere computes for the level "normal".
func normalMemoryShares(memoryMB int64) int32 { return int32(10 * memoryMB) }
func normalCPUShares(vcpus int32) int32       { return 1000 * vcpus }

func allocation(shares int32) *types.ResourceAllocationInfo {
	return &types.ResourceAllocationInfo{
		Reservation:           types.NewInt64(0),
		ExpandableReservation: types.NewBool(false),
		Limit:                 types.NewInt64(unlimited),
		Shares:                &types.SharesInfo{Shares: shares, Level: types.SharesLevelNormal},
	}
}

// merged keeps what the request does not set.
func merged(current types.ResourceAllocationInfo, sent *types.ResourceAllocationInfo) types.ResourceAllocationInfo {
	if sent.Reservation != nil {
		current.Reservation = sent.Reservation
	}
	if sent.Limit != nil {
		current.Limit = sent.Limit
	}
	if sent.Shares != nil {
		current.Shares = sent.Shares
	}
	return current
}

// withShares computes the shares of a level; a custom number is kept.
func withShares(info types.ResourceAllocationInfo, normal int32) types.ResourceAllocationInfo {
	shares := *info.Shares
	switch shares.Level {
	case types.SharesLevelLow:
		shares.Shares = normal / 2
	case types.SharesLevelNormal:
		shares.Shares = normal
	case types.SharesLevelHigh:
		shares.Shares = normal * 2
	}
	info.Shares = &shares
	return info
}

// checkAllocation refuses what no release accepts. capacity is the most that the VM can use.
func checkAllocation(field string, info types.ResourceAllocationInfo, capacity int64) *refusal {
	reservation, limit := *info.Reservation, *info.Limit
	switch {
	case reservation < 0:
		return invalidArgument(field+".reservation", "%d is negative", reservation)
	case reservation > capacity:
		return invalidArgument(field+".reservation", "%d is more than %d", reservation, capacity)
	case limit < unlimited:
		return invalidArgument(field+".limit", "%d: want -1 or more", limit)
	case limit != unlimited && limit < reservation:
		return invalidArgument(field+".limit", "%d is below the reservation of %d", limit, reservation)
	}
	switch info.Shares.Level {
	case types.SharesLevelLow, types.SharesLevelNormal, types.SharesLevelHigh:
	case types.SharesLevelCustom:
		if info.Shares.Shares < 0 {
			return invalidArgument(field+".shares", "%d is negative", info.Shares.Shares)
		}
	default:
		return invalidArgument(field+".shares.level", "%q is not a level", info.Shares.Level)
	}
	return nil
}

func allocationChanges(path string, before, after types.ResourceAllocationInfo) []types.PropertyChange {
	var list []types.PropertyChange
	if *before.Reservation != *after.Reservation {
		list = append(list, types.PropertyChange{Name: path + ".reservation", Val: *after.Reservation})
	}
	if *before.Limit != *after.Limit {
		list = append(list, types.PropertyChange{Name: path + ".limit", Val: *after.Limit})
	}
	if *before.Shares != *after.Shares {
		list = append(list, types.PropertyChange{Name: path + ".shares", Val: *after.Shares})
	}
	return list
}
