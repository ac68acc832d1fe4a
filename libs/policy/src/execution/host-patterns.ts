// Patterns of host names: `example.org`, `*.example.org` (every name below
// it, not itself), each with `:port` for another port than 80 and 443.

const USUAL_PORTS: readonly number[] = [80, 443];

interface HostPattern {
  name: string;
  isSuffix: boolean;
  ports: readonly number[];
}

/** Whether one of the patterns lets a name through at a port. The name is in lower case and has no dot at its end. */
export function matchesPatterns(name: string, port: number, patterns: readonly string[]): boolean {
  return patterns.map(parsePattern).some((pattern) => pattern.ports.includes(port) && coversName(pattern, name, false));
}

/** Whether everything that a pattern lets through is let through by one of the others. */
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
