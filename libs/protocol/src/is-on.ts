const OFF = ['', '0', 'false', 'no', 'off'];

/** Tells whether a variable turns a switch on: unset, empty, `0`, `false`, `no` and `off` in any case do not. */
export function isOn(value: string | undefined): boolean {
  return !OFF.includes((value ?? '').trim().toLowerCase());
}
