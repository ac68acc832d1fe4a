const UNIT_MS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * The milliseconds of `500ms`, `30s`, `5m`, `24h`, `2d` or a plain
 * number of milliseconds. Undefined when it is none of them.
 */
export function parseDurationText(text: string): number | undefined {
  const [, amount, unit = 'ms'] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)?$/.exec(text) ?? [];
  return amount === undefined ? undefined : Math.round(Number(amount) * (UNIT_MS[unit] as number));
}
