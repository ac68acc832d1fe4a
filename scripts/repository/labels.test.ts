import { describe, expect, test } from 'vitest';
import { repositoryFiles } from './repository-files.ts';

// A comment line `// AREA-1. Sentence.` defines the label of an invariant. Other texts cite it as `AREA-1`.

const definition = /^[ \t]*(?:\/\/|\*|--|#) ([A-Z][A-Z-]*[A-Z])-(\d+)\. /gm;
const citation = /(?<![\w-])([A-Z][A-Z-]*[A-Z])-(\d+)(?![\w-])/g;
/** Words of the same form that are no labels. */
const ordinary = new Set(['UTF', 'SHA', 'AES', 'ISO', 'RFC', 'CVE', 'CRC', 'HMAC-SHA', 'AGE-SECRET-KEY', 'EMP', 'AB']);

const sources = await repositoryFiles(
  (path) => /\.(?:ts|cjs|c|h|lua|sh|md|grit)$/.test(path) && !path.startsWith('scripts/repository/'),
);

type Label = { area: string; label: string; path: string };

function labels(pattern: RegExp): Label[] {
  return sources.flatMap(({ path, text }) =>
    Array.from(text.matchAll(pattern), ([, area, number]) => ({
      area: area as string,
      label: `${area}-${number}`,
      path,
    })),
  );
}

const defined = labels(definition).filter(({ path }) => !path.endsWith('.md'));

describe('labels of invariants', () => {
  test('exist', () => {
    expect(defined.length).toBeGreaterThan(20);
  });

  test('are defined once', () => {
    const counts = Map.groupBy(defined, ({ label }) => label);
    expect([...counts.values()].filter((all) => all.length > 1)).toEqual([]);
  });

  test('are defined in one file per area', () => {
    const areas = Map.groupBy(defined, ({ area }) => area);
    const paths = [...areas].map(([area, all]) => [area, [...new Set(all.map(({ path }) => path))]] as const);
    expect(paths.filter(([, all]) => all.length > 1)).toEqual([]);
  });

  test('are defined where they are cited', () => {
    const known = new Set(defined.map(({ label }) => label));
    const cited = labels(citation).filter(({ area }) => !ordinary.has(area));
    expect(cited.filter(({ label }) => !known.has(label)).map(({ label, path }) => `${label} in ${path}`)).toEqual([]);
  });

  test('do not have the old, ambiguous form of one letter', () => {
    const old =
      /^[ \t]*(?:\/\/|\*|--|#) [A-Z]\d{1,2}[.:] .*|\b(?:test|describe)(?:\.\w+)*\(\s*['"`](?:[A-Z]\d{1,2}:|.*\([A-Z]\d{1,2}(?:, [A-Z]\d{1,2})*\)).*/gm;
    const found = sources.flatMap(({ path, text }) =>
      Array.from(text.matchAll(old), ([line]) => `${path}: ${line.trim()}`),
    );
    expect(found).toEqual([]);
  });
});
