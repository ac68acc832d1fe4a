/**
 * Headers of every reply. Replies contain what came from sessions, such as output, files and names, so a browser must
 * neither guess their type nor run anything in them.
 */
export const SAFE_HEADERS = {
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  'content-security-policy': 'sandbox',
} as const;
