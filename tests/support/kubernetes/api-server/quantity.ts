const BINARY = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];
const DECIMAL: Record<string, number> = { n: -9, u: -6, m: -3, '': 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 };
const pattern = /^([+-]?(?:\d+(?:\.\d*)?|\.\d+))(?:([KMGTPE]i)|([numkMGTPE])|[eE]([+-]?\d+))?$/;

/** Amount of a resource, such as 500m of a CPU or 64Mi of memory. */
export interface Quantity {
  /** Amount in units of the resource. */
  value: number;
  isBinary: boolean;
}

/** Parses a quantity. Returns undefined for text that is none. */
export function parseQuantity(text: string | number): Quantity | undefined {
  const match = pattern.exec(String(text));
  if (!match) return undefined;
  const [, number = '', binary, decimal = '', exponent = '0'] = match;
  if (binary !== undefined) return { value: Number(number) * 1024 ** BINARY.indexOf(binary), isBinary: true };
  // A division keeps 250m exact, which a multiplication by 0.001 would not.
  const power = (DECIMAL[decimal] ?? 0) + Number(exponent);
  return { value: power < 0 ? Number(number) / 10 ** -power : Number(number) * 10 ** power, isBinary: false };
}

/** Returns the value of a quantity that validation has accepted. */
export function amountOf(text: string | number | undefined): number {
  return text === undefined ? 0 : (parseQuantity(text)?.value ?? 0);
}

/** Writes a quantity in its canonical form: the largest unit of its kind that keeps it whole. */
export function formatQuantity({ value, isBinary }: Quantity): string {
  if (value === 0) return '0';
  if (isBinary && Number.isInteger(value) && Math.abs(value) >= 1024) {
    let unit = 0;
    let rest = value;
    while (rest % 1024 === 0 && unit < BINARY.length - 1) {
      rest /= 1024;
      unit += 1;
    }
    return `${rest}${BINARY[unit]}`;
  }
  const [suffix, power] = Object.entries(DECIMAL)
    .toSorted(([, a], [, b]) => b - a)
    .find(([, by]) => Number.isInteger(scaled(value, by))) ?? ['n', -9];
  return `${Math.ceil(scaled(value, power))}${suffix}`;
}

function scaled(value: number, power: number): number {
  const exact = power < 0 ? value * 10 ** -power : value / 10 ** power;
  const nearest = Math.round(exact);
  return Math.abs(exact - nearest) < 1e-6 && power < 0 ? nearest : exact;
}
