import { byteSet } from '../../bytes.ts';
import { DOTTED_CHARS, INSIDE_DATA, type TokenKind } from '../token-kind.ts';

const USERINFO_CHARS = byteSet(String.raw`A-Za-z0-9\-._~!$&'()*+,;=:%@#^|`);
const HEADER_CHARS = byteSet(String.raw`A-Za-z0-9_.~+/=:"' \\-`);

/** Formats that many services use. */
export const GENERAL_TOKEN_KINDS: readonly TokenKind[] = [
  {
    type: 'jwt',
    anchors: ['eyJ'],
    notAfter: INSIDE_DATA,
    chars: DOTTED_CHARS,
    most: 16_384,
    shape:
      /^eyJ[A-Za-z0-9_-]{8,8000}\.(?:eyJ[A-Za-z0-9_-]{8,16000}\.[A-Za-z0-9_-]{0,8000}|[A-Za-z0-9_-]{0,8000}\.[A-Za-z0-9_-]{8,8000}\.[A-Za-z0-9_-]{8,16000}\.[A-Za-z0-9_-]{8,8000})/,
  },
  {
    type: 'authorization',
    anchors: ['authorization'],
    fold: true,
    chars: HEADER_CHARS,
    most: 4096,
    shape:
      /^(?<keep>authorization\\?["']?[:=] {0,3}\\?["']?(?:bearer|basic|token|apikey) {1,3})[A-Za-z0-9_.~+/=-]{12,4000}/i,
    viable: /^authorization(?:\\?["']?(?:[:=] {0,3}\\?["']?(?:[a-z]{0,6}(?: {1,3}[A-Za-z0-9_.~+/=-]{0,4000})?)?)?)?$/i,
  },
  {
    type: 'url_password',
    anchors: ['://'],
    chars: USERINFO_CHARS,
    most: 256,
    shape: /^(?<keep>:\/\/[^:@]{0,128}:)(?!(?:password|passwd|pass|secret|token|xxx+|\*+)@).{1,128}(?=@[A-Za-z0-9])/i,
  },
];
