/** Returns the slots of a host of which one tenant gets `sessions`, because the last eighth is for other tenants. */
export const slotsFor = (sessions: number): number => Math.ceil((sessions * 8) / 7);
