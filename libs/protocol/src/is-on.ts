const OFF = ['', '0', 'false', 'no', 'off'];

/**
 * Whether the environment variable of a switch turns it on. It is off
 * when it is unset, empty, `0`, `false`, `no` or `off`, in any case.
 */
export function isOn(value: string | undefined): boolean {
  return !OFF.includes((value ?? '').trim().toLowerCase());
}
