import { byteSet } from '../../bytes.ts';
import { assigned, BASE64_CHARS, DOTTED_CHARS, INSIDE_DATA, INSIDE_WORD, type TokenKind } from '../token-kind.ts';

const AZURE_CHARS = byteSet('A-Za-z0-9_.~-');
const SAS_CHARS = byteSet('A-Za-z0-9%+/=');

export const CLOUDS: readonly TokenKind[] = [
  {
    type: 'aws_access_key',
    anchors: ['AKIA', 'ASIA', 'ABIA', 'ACCA'],
    notAfter: byteSet('A-Za-z0-9'),
    shape: /^A(?:KI|SI|BI|CC)A[A-Z0-9]{16}(?![A-Za-z0-9])/,
  },
  assigned(
    'aws_secret_key',
    ['aws_secret', 'aws_sec', 'secretaccesskey', 'secret_access_key', 'secret_key', 'aws_key', 'awssecret'],
    '[A-Za-z0-9/+]{40}',
    'A-Za-z0-9/+=',
  ),
  assigned(
    'aws_session_token',
    ['aws_session_token', 'sessiontoken', 'aws_security_token'],
    '[A-Za-z0-9/+=]{100,2000}',
    'A-Za-z0-9/+=',
    2100,
  ),
  {
    type: 'aws_bedrock_key',
    anchors: ['ABSK', 'bedrock-api-key-'],
    notAfter: INSIDE_DATA,
    chars: BASE64_CHARS,
    shape: /^(?:ABSK[A-Za-z0-9+/]{109,269}={0,2}|bedrock-api-key-[A-Za-z0-9+/=]{40,400})/,
  },
  { type: 'gcp_api_key', anchors: ['AIza'], notAfter: INSIDE_DATA, shape: /^AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])/ },
  {
    type: 'gcp_oauth_token',
    anchors: ['ya29.'],
    notAfter: INSIDE_DATA,
    chars: DOTTED_CHARS,
    shape: /^ya29\.[A-Za-z0-9_-]{20,500}/,
  },
  { type: 'gcp_client_secret', anchors: ['GOCSPX-'], shape: /^GOCSPX-[A-Za-z0-9_-]{28}/ },
  {
    type: 'azure_storage_key',
    anchors: ['AccountKey='],
    chars: BASE64_CHARS,
    shape: /^(?<keep>AccountKey=)[A-Za-z0-9+/]{86}==/,
  },
  {
    type: 'azure_shared_access_key',
    anchors: ['SharedAccessKey='],
    chars: BASE64_CHARS,
    shape: /^(?<keep>SharedAccessKey=)[A-Za-z0-9+/]{43}=/,
  },
  {
    type: 'azure_sas',
    anchors: ['&sig=', '?sig='],
    chars: SAS_CHARS,
    shape: /^(?<keep>[?&]sig=)[A-Za-z0-9%+/]{40,80}(?:=|%3D)/i,
  },
  {
    type: 'azure_client_secret',
    anchors: Array.from('0123456789', (digit) => `${digit}Q~`),
    chars: AZURE_CHARS,
    shape: /^\dQ~[A-Za-z0-9_.~-]{31,34}(?![A-Za-z0-9_.~-])/,
  },
  { type: 'alibaba_key', anchors: ['LTAI'], notAfter: INSIDE_DATA, shape: /^LTAI[A-Za-z0-9]{12,20}(?![A-Za-z0-9_-])/ },
  { type: 'tencent_key', anchors: ['AKID'], notAfter: INSIDE_DATA, shape: /^AKID[A-Za-z0-9]{32}(?![A-Za-z0-9_-])/ },
  { type: 'scaleway_key', anchors: ['SCW'], notAfter: INSIDE_DATA, shape: /^SCW[A-Z0-9]{17}(?![A-Za-z0-9_-])/ },
  { type: 'digitalocean_token', anchors: ['dop_v1_', 'doo_v1_', 'dor_v1_'], shape: /^do[opr]_v1_[a-f0-9]{64}/ },
  { type: 'heroku_key', anchors: ['HRKU-'], shape: /^HRKU-[A-Za-z0-9_-]{36,64}/ },
  assigned('heroku_key', ['heroku'], '[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}', 'A-Za-z0-9-'),
  {
    type: 'openshift_token',
    anchors: ['sha256~'],
    chars: AZURE_CHARS,
    shape: /^sha256~[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])/,
  },
  {
    type: 'databricks_token',
    anchors: ['dapi'],
    notAfter: INSIDE_WORD,
    shape: /^dapi[a-f0-9]{32}(?:-\d)?(?![A-Za-z0-9])/,
  },
  { type: 'cloudflare_ca_key', anchors: ['v1.0-'], notAfter: INSIDE_WORD, shape: /^v1\.0-[a-f0-9]{24}-[a-f0-9]{146}/ },
  assigned(
    'cloudflare_key',
    ['cloudflare_api', 'cloudflare_token', 'cloudflare_key', 'cf_api'],
    '(?:[a-f0-9]{37}|[A-Za-z0-9_-]{40})',
    'A-Za-z0-9_-',
  ),
  {
    type: 'fly_token',
    anchors: ['fo1_', 'fm1a_', 'fm1r_', 'fm2_'],
    notAfter: INSIDE_WORD,
    chars: BASE64_CHARS,
    shape: /^(?:fo1_[A-Za-z0-9_-]{43}|fm(?:1[ar]|2)_[A-Za-z0-9+/]{100,500}={0,3})/,
  },
  { type: 'netlify_token', anchors: ['nfp_'], notAfter: INSIDE_WORD, shape: /^nfp_[A-Za-z0-9]{36,40}/ },
  { type: 'render_key', anchors: ['rnd_'], notAfter: INSIDE_WORD, shape: /^rnd_[A-Za-z0-9]{32}(?![A-Za-z0-9])/ },
  {
    type: 'supabase_token',
    anchors: ['sbp_', 'sb_secret_'],
    notAfter: INSIDE_WORD,
    shape: /^sb(?:p_[a-f0-9]{40}|_secret_[A-Za-z0-9_-]{31,41})/,
  },
  {
    type: 'planetscale_token',
    anchors: ['pscale_tkn_', 'pscale_pw_', 'pscale_oauth_'],
    chars: AZURE_CHARS,
    shape: /^pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{32,64}/,
  },
  { type: 'age_secret_key', anchors: ['AGE-SECRET-KEY-1'], shape: /^AGE-SECRET-KEY-1[0-9A-Z]{58}/ },
  {
    type: 'onepassword_key',
    anchors: ['A3-'],
    notAfter: INSIDE_DATA,
    shape: /^A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}(?![A-Z0-9])/,
  },
  {
    type: 'onepassword_token',
    anchors: ['ops_eyJ'],
    chars: BASE64_CHARS,
    most: 2048,
    shape: /^ops_eyJ[A-Za-z0-9+/_-]{100,2000}={0,3}/,
  },
];
