import { scopesOf } from '../../apps/api/src/access/authorize.ts';
import { ROUTES } from '../../apps/api/src/routes/index.ts';
import type { Route, Shape } from '../../apps/api/src/routes/route.ts';
import type { Page } from './write-pages.ts';

/** Returns the page with a row for each route of the HTTP API, from its declaration. */
export function writeRoutes(): Page {
  const rows = ROUTES.map(
    (route) => `| \`${route.method} /v1${route.path.replace('*}', '}')}\` | ${cells(route).join(' | ')} |`,
  );
  const lines = [
    '# Paths of the HTTP API',
    '',
    '<!-- Written by `npm run reference` from the declarations of the routes. -->',
    '',
    'Every path below `/v1`: the scope that a key needs, the parameters of its query, its replies, and its purpose. Bodies',
    'and replies are described in [openapi.json](../openapi.json). How they are used: [http.md](../http.md).',
    '',
    '| Path | Scope | Query | Replies | Purpose |',
    '|---|---|---|---|---|',
    ...rows,
    '',
  ];
  return { path: 'http.md', text: lines.join('\n') };
}

function cells({ scope, query, replies, summary }: Route): string[] {
  const names = Object.keys(query ?? ({} as Shape)).map((name) => `\`${name}\``);
  return [
    scopesOf(scope).join(' or ') || 'any',
    names.join(', ') || '–',
    Object.keys(replies).join(', '),
    summary.replaceAll('|', '\\|'),
  ];
}
