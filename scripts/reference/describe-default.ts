const UNITS: Record<'Ms' | 'Bytes', [size: number, name: string][]> = {
  Ms: [
    [86_400_000, 'd'],
    [3_600_000, 'h'],
    [60_000, 'min'],
    [1_000, 's'],
  ],
  Bytes: [
    [2 ** 30, 'GiB'],
    [2 ** 20, 'MiB'],
    [2 ** 10, 'KiB'],
  ],
};

/**
 * Formats a time or size in its largest whole unit (`10 min`). Returns '' if the field's name has no unit, or if the
 * value is small.
 */
export function describeAmount(field: string, value: unknown): string {
  const unit = field.endsWith('Ms') ? 'Ms' : field.endsWith('Bytes') ? 'Bytes' : undefined;
  if (unit === undefined || typeof value !== 'number') return '';
  const [size, name] = UNITS[unit].find(([size]) => value >= size && value % size === 0) ?? [1, ''];
  return name === '' ? '' : `${value / size} ${name}`;
}

/** Formats a default: `600,000`, `'docker'`, `none`. */
export function describeDefault(value: unknown): string {
  if (typeof value === 'number') return value.toLocaleString('en-US');
  if (typeof value === 'object') return 'none';
  return typeof value === 'string' ? `'${value}'` : String(value);
}
