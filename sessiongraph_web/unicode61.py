"""Which code points SQLite's `unicode61` makes words of, and how it folds them: data, probed from SQLite.

`tests/unit/test_unicode61.py` asks SQLite again and compares; its `render` writes the text below.
"""

from __future__ import annotations

from typing import Final

# first-last in hexadecimal: the code points that words are made of (those in no range separate words).
TOKENS: Final = """
30-39 41-5a 61-7a aa-aa b2-b3 b5-b5 b9-ba bc-be c0-d6 d8-f6 f8-2c1 2c6-2d1 2e0-2e4 2ec-2ec 2ee-2ee 370-374
376-37d 37f-383 386-386 388-3f5 3f7-481 48a-559 560-588 58b-58e 590-590 5c8-5f2 5f5-5ff 605-605 61c-61d
620-64a 660-669 66e-66f 671-6d3 6d5-6d5 6e5-6e6 6ee-6fc 6ff-6ff 70e-70e 710-710 712-72f 74b-7a5 7b1-7ea
7f4-7f5 7fa-815 81a-81a 824-824 828-828 82e-82f 83f-858 85c-85d 85f-8e3 8ff-8ff 904-939 93d-93d 950-950
958-961 966-96f 971-980 984-9bb 9bd-9bd 9c5-9c6 9c9-9ca 9ce-9d6 9d8-9e1 9e4-9f1 9f4-9f9 9fc-a00 a04-a3b
a3d-a3d a43-a46 a49-a4a a4e-a50 a52-a6f a72-a74 a76-a80 a84-abb abd-abd ac6-ac6 aca-aca ace-ae1 ae4-aef
af2-b00 b04-b3b b3d-b3d b45-b46 b49-b4a b4e-b55 b58-b61 b64-b6f b71-b81 b83-bbd bc3-bc5 bc9-bc9 bce-bd6
bd8-bf2 bfb-c00 c04-c3d c45-c45 c49-c49 c4e-c54 c57-c61 c64-c7e c80-c81 c84-cbb cbd-cbd cc5-cc5 cc9-cc9
cce-cd4 cd7-ce1 ce4-d01 d04-d3d d45-d45 d49-d49 d4e-d56 d58-d61 d64-d78 d7a-d81 d84-dc9 dcb-dce dd5-dd5
dd7-dd7 de0-df1 df5-e30 e32-e33 e3b-e3e e40-e46 e50-e59 e5c-eb0 eb2-eb3 eba-eba ebd-ec7 ece-f00 f20-f33
f40-f70 f88-f8c f98-f98 fbd-fbd fcd-fcd fdb-102a 103f-1049 1050-1055 105a-105d 1061-1061 1065-1066 106e-1070
1075-1081 108e-108e 1090-1099 10a0-10fa 10fc-135c 1369-138f 139a-13ff 1401-166c 166f-167f 1681-169a 169d-16ea
16ee-1711 1715-1731 1737-1751 1754-1771 1774-17b3 17d7-17d7 17dc-17dc 17de-17ff 180f-18a8 18aa-191f 192c-192f
193c-193f 1941-1943 1946-19af 19c1-19c7 19ca-19dd 1a00-1a16 1a1c-1a1d 1a20-1a54 1a5f-1a5f 1a7d-1a7e 1a80-1a9f
1aa7-1aa7 1aae-1aff 1b05-1b33 1b45-1b59 1b7d-1b7f 1b83-1ba0 1bae-1be5 1bf4-1bfb 1c00-1c23 1c38-1c3a 1c40-1c7d
1c80-1cbf 1cc8-1ccf 1ce9-1cec 1cee-1cf1 1cf5-1dbf 1de7-1dfb 1e00-1fbc 1fbe-1fbe 1fc2-1fcc 1fd0-1fdc 1fe0-1fec
1ff0-1ffc 1fff-1fff 2065-2069 2070-2079 207f-2089 208f-209f 20ba-20cf 20f1-20ff 2102-2102 2107-2107 210a-2113
2115-2115 2119-211d 2124-2124 2126-2126 2128-2128 212a-212d 212f-2139 213c-213f 2145-2149 214e-214e 2150-218f
23f4-23ff 2427-243f 244b-249b 24ea-24ff 2700-2700 2776-2793 2b4d-2b4f 2b5a-2ce4 2ceb-2cee 2cf2-2cf8 2cfd-2cfd
2d00-2d6f 2d71-2d7e 2d80-2ddf 2e2f-2e2f 2e3c-2e7f 2e9a-2e9a 2ef4-2eff 2fd6-2fef 2ffc-2fff 3005-3007 3021-3029
3031-3035 3038-303c 3040-3098 309d-309f 30a1-30fa 30fc-318f 3192-3195 31a0-31bf 31e4-31ff 321f-3229 3248-324f
3251-325f 3280-3289 32b1-32bf 32ff-32ff 3400-4dbf 4e00-a48f a4c7-a4fd a500-a60c a610-a66e a67f-a69e a6a0-a6ef
a6f8-a6ff a717-a71f a722-a788 a78b-a801 a803-a805 a807-a80a a80c-a822 a82c-a835 a83a-a873 a878-a87f a882-a8b3
a8c5-a8cd a8d0-a8df a8f2-a8f7 a8fb-a925 a930-a946 a954-a95e a960-a97f a984-a9b2 a9ce-a9dd a9e0-aa28 aa37-aa42
aa44-aa4b aa4e-aa5b aa60-aa76 aa7a-aa7a aa7c-aaaf aab1-aab1 aab5-aab6 aab9-aabd aac0-aac0 aac2-aadd aae0-aaea
aaf2-aaf4 aaf7-abe2 abee-d7ff e000-fb1d fb1f-fb28 fb2a-fbb1 fbc2-fd3d fd40-fdfb fdfe-fdff fe1a-fe1f fe27-fe2f
fe53-fe53 fe67-fe67 fe6c-fefe ff00-ff00 ff10-ff19 ff21-ff3a ff41-ff5a ff66-ffdf ffe7-ffe7 ffef-fff8
10000-100ff 10103-10136 10140-10178 1018a-1018f 1019c-101cf 101fe-1039e 103a0-103cf 103d1-10856 10858-1091e
10920-1093e 10940-10a00 10a04-10a04 10a07-10a0b 10a10-10a37 10a3b-10a3e 10a40-10a4f 10a59-10a7e 10a80-10b38
10b40-10fff 11003-11037 1104e-1107f 11083-110af 110c2-110ff 11103-11126 11135-1113f 11144-1117f 11183-111b2
111c1-111c4 111c9-116aa 116b8-1246f 12474-16f50 16f7f-16f8e 16f93-1cfff 1d0f6-1d0ff 1d127-1d128 1d1de-1d1ff
1d246-1d2ff 1d357-1d6c0 1d6c2-1d6da 1d6dc-1d6fa 1d6fc-1d714 1d716-1d734 1d736-1d74e 1d750-1d76e 1d770-1d788
1d78a-1d7a8 1d7aa-1d7c2 1d7c4-1eeef 1eef2-1efff 1f02c-1f02f 1f094-1f09f 1f0af-1f0b0 1f0bf-1f0c0 1f0d0-1f0d0
1f0e0-1f10f 1f12f-1f12f 1f16c-1f16f 1f19b-1f1e5 1f203-1f20f 1f23b-1f23f 1f249-1f24f 1f252-1f2ff 1f321-1f32f
1f336-1f336 1f37d-1f37f 1f394-1f39f 1f3c5-1f3c5 1f3cb-1f3df 1f3f1-1f3ff 1f43f-1f43f 1f441-1f441 1f4f8-1f4f8
1f4fd-1f4ff 1f53e-1f53f 1f544-1f54f 1f568-1f5fa 1f641-1f644 1f650-1f67f 1f6c6-1f6ff 1f774-e0000 e0002-e001f
e0080-e00ff e01f0-10ffff
"""

# first:last:step:target:growth in hexadecimal: each code point of a run folds to its target, which grows by step.
FOLDED: Final = """
41:5a:1:61:1 b5:b5:1:3bc:1 c0:c5:1:61:0 c6:c6:1:e6:1 c7:c9:2:63:2 c8:ca:2:65:0 cb:cb:1:65:1 cc:cf:1:69:0
d0:d0:1:f0:1 d1:d2:1:6e:1 d3:d6:1:6f:0 d8:d8:1:f8:1 d9:dc:1:75:0 dd:dd:1:79:1 de:de:1:fe:1 e0:e5:1:61:0
e7:e9:2:63:2 e8:ea:2:65:0 eb:eb:1:65:1 ec:ef:1:69:0 f1:f2:1:6e:1 f3:f6:1:6f:0 f9:fc:1:75:0 fd:ff:2:79:0
100:105:1:61:0 106:10d:1:63:0 10e:10f:1:64:0 110:110:1:111:1 112:11b:1:65:0 11c:123:1:67:0 124:125:1:68:0
126:126:1:127:1 128:130:1:69:0 132:132:1:133:1 134:135:1:6a:0 136:137:1:6b:0 139:13e:1:6c:0 13f:141:2:140:2
143:148:1:6e:0 14a:14a:1:14b:1 14c:151:1:6f:0 152:152:1:153:1 154:159:1:72:0 15a:161:1:73:0 162:165:1:74:0
166:166:1:167:1 168:173:1:75:0 174:175:1:77:0 176:178:1:79:0 179:17e:1:7a:0 17f:17f:1:73:1 181:181:1:253:1
182:184:2:183:2 186:186:1:254:1 187:187:1:188:1 189:18a:1:256:1 18b:18b:1:18c:1 18e:18e:1:1dd:1
18f:18f:1:259:1 190:190:1:25b:1 191:191:1:192:1 193:193:1:260:1 194:194:1:263:1 196:196:1:269:1
197:197:1:268:1 198:198:1:199:1 19c:19c:1:26f:1 19d:19d:1:272:1 19f:19f:1:275:1 1a0:1a1:1:6f:0 1a2:1a4:2:1a3:2
1a6:1a6:1:280:1 1a7:1a7:1:1a8:1 1a9:1a9:1:283:1 1ac:1ac:1:1ad:1 1ae:1ae:1:288:1 1af:1b0:1:75:0 1b1:1b2:1:28a:1
1b3:1b5:2:1b4:2 1b7:1b7:1:292:1 1b8:1b8:1:1b9:1 1bc:1bc:1:1bd:1 1c4:1c5:1:1c6:0 1c7:1c8:1:1c9:0
1ca:1cb:1:1cc:0 1cd:1ce:1:61:0 1cf:1d0:1:69:0 1d1:1d2:1:6f:0 1d3:1d4:1:75:0 1d5:1db:2:1d6:2 1de:1e4:2:1df:2
1e6:1e7:1:67:0 1e8:1e9:1:6b:0 1ea:1eb:1:6f:0 1ec:1ee:2:1ed:2 1f0:1f0:1:6a:1 1f1:1f2:1:1f3:0 1f4:1f5:1:67:0
1f6:1f6:1:195:1 1f7:1f7:1:1bf:1 1f8:1f9:1:6e:0 1fa:1fe:2:1fb:2 200:203:1:61:0 204:207:1:65:0 208:20b:1:69:0
20c:20f:1:6f:0 210:213:1:72:0 214:217:1:75:0 218:219:1:73:0 21a:21b:1:74:0 21c:21c:1:21d:1 21e:21f:1:68:0
220:220:1:19e:1 222:224:2:223:2 226:227:1:61:0 228:229:1:65:0 22a:22c:2:22b:2 22e:22f:1:6f:0 230:230:1:231:1
232:233:1:79:0 23a:23a:1:2c65:1 23b:23b:1:23c:1 23d:23d:1:19a:1 23e:23e:1:2c66:1 241:241:1:242:1
243:243:1:180:1 244:244:1:289:1 245:245:1:28c:1 246:24e:2:247:2 370:372:2:371:2 376:376:1:377:1
386:386:1:3ac:1 388:38a:1:3ad:1 38c:38c:1:3cc:1 38e:38f:1:3cd:1 391:3a1:1:3b1:1 3a3:3ab:1:3c3:1
3c2:3c2:1:3c3:1 3cf:3cf:1:3d7:1 3d0:3d0:1:3b2:1 3d1:3d1:1:3b8:1 3d5:3d5:1:3c6:1 3d6:3d6:1:3c0:1
3d8:3ee:2:3d9:2 3f0:3f0:1:3ba:1 3f1:3f1:1:3c1:1 3f4:3f4:1:3b8:1 3f5:3f5:1:3b5:1 3f7:3f7:1:3f8:1
3f9:3f9:1:3f2:1 3fa:3fa:1:3fb:1 3fd:3ff:1:37b:1 400:40f:1:450:1 410:42f:1:430:1 460:480:2:461:2
48a:4be:2:48b:2 4c0:4c0:1:4cf:1 4c1:4cd:2:4c2:2 4d0:526:2:4d1:2 531:556:1:561:1 10a0:10c5:1:2d00:1
10c7:10c7:1:2d27:1 10cd:10cd:1:2d2d:1 1e00:1e01:1:61:0 1e02:1e07:1:62:0 1e08:1e08:1:1e09:1 1e0a:1e13:1:64:0
1e14:1e16:2:1e15:2 1e18:1e1b:1:65:0 1e1c:1e1c:1:1e1d:1 1e1e:1e1f:1:66:0 1e20:1e21:1:67:0 1e22:1e2b:1:68:0
1e2c:1e2d:1:69:0 1e2e:1e2e:1:1e2f:1 1e30:1e35:1:6b:0 1e36:1e37:1:6c:0 1e38:1e38:1:1e39:1 1e3a:1e3d:1:6c:0
1e3e:1e43:1:6d:0 1e44:1e4b:1:6e:0 1e4c:1e52:2:1e4d:2 1e54:1e57:1:70:0 1e58:1e5b:1:72:0 1e5c:1e5c:1:1e5d:1
1e5e:1e5f:1:72:0 1e60:1e63:1:73:0 1e64:1e68:2:1e65:2 1e6a:1e71:1:74:0 1e72:1e77:1:75:0 1e78:1e7a:2:1e79:2
1e7c:1e7f:1:76:0 1e80:1e89:1:77:0 1e8a:1e8d:1:78:0 1e8e:1e8f:1:79:0 1e90:1e95:1:7a:0 1e96:1e96:1:68:1
1e97:1e97:1:74:1 1e98:1e98:1:77:1 1e99:1e99:1:79:1 1e9b:1e9b:1:73:1 1e9e:1e9e:1:df:1 1ea0:1ea3:1:61:0
1ea4:1eb6:2:1ea5:2 1eb8:1ebd:1:65:0 1ebe:1ec6:2:1ebf:2 1ec8:1ecb:1:69:0 1ecc:1ecf:1:6f:0 1ed0:1ee2:2:1ed1:2
1ee4:1ee7:1:75:0 1ee8:1ef0:2:1ee9:2 1ef2:1ef9:1:79:0 1efa:1efe:2:1efb:2 1f08:1f0f:1:1f00:1 1f18:1f1d:1:1f10:1
1f28:1f2f:1:1f20:1 1f38:1f3f:1:1f30:1 1f48:1f4d:1:1f40:1 1f59:1f5f:2:1f51:2 1f68:1f6f:1:1f60:1
1f88:1f8f:1:1f80:1 1f98:1f9f:1:1f90:1 1fa8:1faf:1:1fa0:1 1fb8:1fb9:1:1fb0:1 1fba:1fbb:1:1f70:1
1fbc:1fbc:1:1fb3:1 1fbe:1fbe:1:3b9:1 1fc8:1fcb:1:1f72:1 1fcc:1fcc:1:1fc3:1 1fd8:1fd9:1:1fd0:1
1fda:1fdb:1:1f76:1 1fe8:1fe9:1:1fe0:1 1fea:1feb:1:1f7a:1 1fec:1fec:1:1fe5:1 1ff8:1ff9:1:1f78:1
1ffa:1ffb:1:1f7c:1 1ffc:1ffc:1:1ff3:1 2126:2126:1:3c9:1 212a:212a:1:6b:1 212b:212b:1:61:1 2132:2132:1:214e:1
2160:216f:1:2170:1 2183:2183:1:2184:1 2c00:2c2e:1:2c30:1 2c60:2c60:1:2c61:1 2c62:2c62:1:26b:1
2c63:2c63:1:1d7d:1 2c64:2c64:1:27d:1 2c67:2c6b:2:2c68:2 2c6d:2c6d:1:251:1 2c6e:2c6e:1:271:1 2c6f:2c6f:1:250:1
2c70:2c70:1:252:1 2c72:2c72:1:2c73:1 2c75:2c75:1:2c76:1 2c7e:2c7f:1:23f:1 2c80:2ce2:2:2c81:2
2ceb:2ced:2:2cec:2 2cf2:2cf2:1:2cf3:1 a640:a66c:2:a641:2 a680:a696:2:a681:2 a722:a72e:2:a723:2
a732:a76e:2:a733:2 a779:a77b:2:a77a:2 a77d:a77d:1:1d79:1 a77e:a786:2:a77f:2 a78b:a78b:1:a78c:1
a78d:a78d:1:265:1 a790:a792:2:a791:2 a7a0:a7a8:2:a7a1:2 a7aa:a7aa:1:266:1 ff21:ff3a:1:ff41:1
10400:10427:1:10428:1
"""

# Dropped inside a word, separators elsewhere.
DIACRITICS: Final = (
    "\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u0309\u030a\u030b\u030c\u030f\u0311\u031b\u0323\u0324"
    "\u0325\u0326\u0327\u0328\u032d\u032e\u0330\u0331"
)


def _token_ranges() -> tuple[tuple[int, int], ...]:
    pairs = (written.split("-") for written in TOKENS.split())
    return tuple((int(first, 16), int(last, 16)) for first, last in pairs)


def _folds() -> dict[int, int]:
    folds = {}
    for written in FOLDED.split():
        first, last, step, target, growth = (int(part, 16) for part in written.split(":"))
        for index, code in enumerate(range(first, last + 1, step)):
            folds[code] = target + index * growth
    return folds


TOKEN_RANGES: Final = _token_ranges()
FOLDS: Final = _folds()
