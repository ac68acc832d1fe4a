export interface Interval {
  from: number;
  to: number;
}

/** Begin and end of an opening of a shell, and of the pulls of its image, by the clock of the host. */
export interface ShellOpening extends Interval {
  pull?: Interval | undefined;
}

/** ShellOpening of a shell that this host has not opened. */
export const NEVER_OPENED: ShellOpening = { from: 0, to: 0 };
