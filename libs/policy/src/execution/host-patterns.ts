// Matches host names: `example.org`, and `*.example.org` for all names below it. `:port` allows another port than 80 or
// 443.

const USUAL_PORTS: readonly number[] = [80, 443];

interface HostPattern {
  name: string;
  isSuffix: boolean;
  ports: readonly number[];
}

/** Tells whether a pattern allows a name at a port. The name is in lower case, without a dot at its end. */
export function matchesPatterns(name: string, port: number, patterns: readonly string[]): boolean {
  return patterns.map(parsePattern).some((pattern) => pattern.ports.includes(port) && coversName(pattern, name, false));
}

/** Tells whether the patterns in `others` allow everything that `pattern` allows. */
export function isWithinPatterns(pattern: string, others: readonly string[]): boolean {
  const { name, isSuffix, ports } = parsePattern(pattern);
  const covering = others.map(parsePattern).filter((other) => coversName(other, name, isSuffix));
  return ports.every((port) => covering.some((other) => other.ports.includes(port)));
}

function coversName({ name: own, isSuffix }: HostPattern, name: string, nameIsSuffix: boolean): boolean {
  if (!isSuffix) return !nameIsSuffix && name === own;
  return name.endsWith(`.${own}`) || (nameIsSuffix && name === own);
}

function parsePattern(pattern: string): HostPattern {
  const [host = '', port] = pattern.split(':');
  const isSuffix = host.startsWith('*.');
  return { name: isSuffix ? host.slice(2) : host, isSuffix, ports: port === undefined ? USUAL_PORTS : [Number(port)] };
}
