const UNIT_MS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Parses `500ms`, `30s`, `5m`, `24h`, `2d` or a number of milliseconds. Returns undefined for other text. */
export function parseDurationText(text: string): number | undefined {
  const [, amount, unit = 'ms'] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)?$/.exec(text) ?? [];
  return amount === undefined ? undefined : Math.round(Number(amount) * (UNIT_MS[unit] as number));
}
