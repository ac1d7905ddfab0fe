"""The words that a search for tools knows: those that say nothing, those that mean the same, Chinese in English. Pure.

The tables hold the common vocabulary of tools: verbs that tools are named by, and the things that tools touch.
"""

from typing import Final

__all__ = ["ALIKE", "CHANGING", "CHINESE", "DELETING", "IRREGULAR", "LIGHT", "SAME", "SILENT"]

_SILENT: Final = """
a about after again all already also am an and any anybody anyone anything are aren as at be because been being bit
bunch but by called can could couldn couple did didn do does doesn don each eight else enough ever every everybody
everyone everything five for four from give going gonna got great had hadn has hasn have haven having he hello help
her here hey hi him his how i if in into is isn it its just kind kindly let like ll lot lots many may maybe me might
mine more most much must my named need nice nine no not of off okay on once one only or other our ours out over own
please quickly quite rather really right same seven shall she should shouldn since six so some somebody somehow
someone something soon still such sure tell ten than thank thanks that the their them then there these they thing
things this those though three through to told too try two up upon us use using ve very via wanna want was wasn way we
were what when where whether which while who whole whose why will with within without won would wouldn yet you your
yours
一下 一个 一些 一条 么样 什么 你的 可以 哪些 帮我 怎么 我的 是什 有什 请问 这个 那个
"""
SILENT: Final = frozenset(_SILENT.split())

_LIGHT: Final = """
add change current get go keep know look make need new open put read run say see set show start take tell time work
"""
#: Words that people use for everything, so that they say little about the tool.
LIGHT: Final = frozenset(_LIGHT.split())

_CHANGING: Final = """
add apply copy create edit fork import insert merge move patch post push put rename replace send set update upload watch
write
"""
_DELETING: Final = "clear delete drop erase purge remove uninstall unwatch"
#: Verbs that tools have in their names when they change or delete something.
CHANGING: Final = tuple(_CHANGING.split())
DELETING: Final = tuple(_DELETING.split())

_IRREGULAR: Final = """
began begin|begun begin|bought buy|broke break|broken break|built build|chose choose|chosen choose|drawn draw|drew draw
drove drive|driven drive|fell fall|forgot forget|forgotten forget|found find|gave give|given give|grew grow|grown grow
heard hear|hidden hide|kept keep|knew know|known know|lost lose|made make|meant mean|met meet|paid pay|ran run|said say
sent send|shown show|sold sell|spent spend|spoke speak|spoken speak|thought think|threw throw|thrown throw|took take
taken take|went go|gone go|won win|wrote write|written write
"""
#: The grammatical forms of English verbs that no ending shows.
IRREGULAR: Final = dict(entry.split() for entry in _IRREGULAR.replace("\n", "|").split("|") if entry)

_SAME: Final = """
bike bicycle|email mail|folder directory|photo image|preprint paper|repo repository|subfolder directory|website site
worksheet sheet
"""
#: Other words for one thing, and the words that tools use.
SAME: Final = dict(entry.split() for entry in _SAME.replace("\n", "|").split("|") if entry)

#: Groups of words with a similar meaning. Another word of the group counts less than the word itself.
ALIKE: Final = (
    "create add make open put insert generate build draw start",
    "delete remove drop erase clear forget uninstall discard kill destroy",
    "send post write reply submit publish",
    "get read show fetch retrieve view display see look load",
    "find search look locate query lookup discover",
    "list get show enumerate browse",
    "run execute start launch perform invoke call",
    "stop end kill terminate cancel close abort quit",
    "restart reload rollout reboot reset",
    "undo revert reset rollback restore",
    "change edit update modify replace rename set patch alter adjust",
    "change diff difference modification compare",
    "move rename relocate transfer shift",
    "copy duplicate clone fork",
    "download fetch get export save",
    "upload import push send attach",
    "choose select pick option dropdown",
    "type enter input fill write",
    "press click tap push button",
    "wait until delay pause",
    "open navigate visit go goto",
    "back previous return",
    "merge combine join unite",
    "convert transform turn translate",
    "extract parse pull scrape",
    "summarize summary abstract outline overview",
    "explain describe detail info information documentation",
    "remember memory store knowledge save entity observation note fact",
    "know forget knowledge memory entity observation recall",
    "scale resize replica size",
    "large size big length",
    "assign assignee owner",
    "react reaction emoji",
    "check verify test validate status",
    "monitor watch follow track observe",
    "login sign authenticate password",
    "image picture photo screenshot figure",
    "diagram chart graph plot draw visualize",
    "event meeting appointment calendar schedule",
    "folder directory",
    "file document path",
    "web internet online website site page url",
    "page website url",
    "browser tab window",
    "message chat conversation text",
    "mail email inbox",
    "channel room group",
    "user person people member profile",
    "issue ticket bug problem task report",
    "error failure fail crash exception failing warning log",
    "comment remark discussion feedback",
    "pod container kubernetes docker kubectl deployment",
    "service deployment container pod kubectl",
    "cell range spreadsheet excel sheet worksheet",
    "workbook spreadsheet excel sheet",
    "row line record",
    "table database sql",
    "time clock timezone hour date",
    "modified changed metadata date",
    "drive car driving direction route travel",
    "bicycle bike cycling ride bicycling",
    "walk walking foot",
    "train bus transit transport",
    "far distance kilometer mile length",
    "address location place geocode position",
    "coordinate latitude longitude geocode location",
    "restaurant business shop local place food cafe hotel",
    "near nearby around local close",
    "weather forecast temperature rain",
    "news article story",
    "paper publication research arxiv article study",
    "encyclopedia wikipedia article",
    "history log past",
    "last recent history",
    "repository repo project",
    "branch fork",
    "code source program function script",
    "network request http traffic api",
    "payment refund charge money invoice",
    "library package module dependency",
    "think reason plan reflect step",
    "latest newest recent current last",
    "say announce inform notify post message",
    "team channel group colleague people",
    "popup dialog alert confirm accept dismiss prompt",
    "yes confirm accept approve agree",
    "console log print output terminal",
    "wiki page notion article documentation knowledge",
    "documentation doc manual guide reference library",
    "high height elevation altitude",
    "storm warning alert hurricane flood",
    "rain snow sun wind storm weather forecast",
    "eat drink food restaurant cafe coffee bar breakfast dinner lunch pizza bakery",
    "way route path direction",
    "trip journey travel route direction",
    "style format font color bold italic border",
    "sum total average calculate formula compute",
    "step process flow procedure workflow",
    "save store keep write",
    "name rename title",
    "switch checkout toggle activate",
    "paragraph text content line word",
    "remember learn know memory",
    "person entity family friend relation",
    "account user profile organization",
    "instance replica copy",
    "running active status state current",
    "first begin start head top",
    "stage staging add index",
    "list option menu choice dropdown",
    "merge accept integrate",
    "thumb like emoji reaction",
    "today recent history latest",
    "song music play audio sound",
    "flight plane airport travel",
    "buy purchase order cart shop",
    "remind reminder alarm timer schedule",
    "price cost rate stock",
    "language translate translation",
    "put insert write set enter",
    "fix correct repair edit change",
    "several multiple various batch",
    "allow permission access permit grant",
    "end tail last bottom",
    "content body text inside",
    "version revision release tag",
    "switch checkout change",
    "stash shelve checkout",
    "save commit record",
    "author writer wrote creator",
    "pr pull",
    "merge pull",
    "approve review accept reject",
    "label tag category mark",
    "done complete finish resolve close state status update",
    "ci check status pipeline build",
    "star favorite bookmark like",
    "reply answer respond response",
    "react reaction emoji heart smile smiley like",
    "thread conversation discussion topic",
    "colleague coworker teammate user member",
    "memorize remember memory observation entity note",
    "relation relationship connect link",
    "duration long minute hour time",
    "hour opening business place detail",
    "subway metro underground tram bus train transit transport",
    "city town village place location",
    "spot venue place attraction",
    "hot cold warm sunny cloudy degree temperature weather forecast",
    "weekend tomorrow tonight week forecast",
    "alert warning danger hazard notification",
    "google search web",
    "scrape crawl extract spider",
    "hit press key",
    "key keyboard press shortcut",
    "shut close exit quit",
    "bigger smaller enlarge shrink resize size width height",
    "js javascript script",
    "form field input box",
    "screenshot capture snapshot screen",
    "mouse cursor hover click drag",
    "javascript evaluate script",
    "credential password login secret token",
    "paragraph block section",
    "rollback rollout undo revert",
    "node machine server host",
    "cluster kubernetes k8s kubectl",
    "install setup add",
    "upgrade update",
    "shell terminal command exec bash execute",
    "inside within exec",
    "tunnel forward port proxy",
    "usage documentation example tutorial howto",
    "organization org company hierarchy team",
    "trend line development time",
    "proportion percentage share pie ratio",
    "marker pin point location map",
    "cause effect reason",
    "highlight color format conditional mark",
    "freeze frozen lock pane",
    "sort order arrange rank",
    "filter narrow restrict",
    "sheet tab worksheet",
    "header heading title caption",
    "cite citation reference bibliography bibtex quote",
    "notify alert watch subscribe notification follow",
    "ponder consider think analyze reason",
    "difficult hard complex tricky",
    "topic subject theme",
    "related similar like connected",
    "customer client contact lead",
    "bucket storage cloud object blob",
    "transcript subtitle caption",
    "metric dashboard monitoring statistics",
    "count number many total amount",
    "todo task reminder issue",
    "database db table sql",
    "config configuration setting preference option",
    "app application program",
    "dir directory folder",
    "vm machine instance server",
    "print output console",
    "link url hyperlink",
    "draft unsent",
    "invite add member",
    "leave quit exit",
    "hide hidden invisible",
    "empty blank clear",
    "random dice lottery",
    "share permission access",
    "import load upload",
    "backup snapshot dump copy",
    "video movie film clip youtube",
    "get obtain acquire receive grab bring retrieve",
    "append add attach extend",
    "write compose jot rewrite note",
    "delete wipe trash throw clean junk tidy",
    "stop halt suspend disable shutdown",
    "change customize improve refactor revise rewrite",
    "examine inspect check view analyze audit",
    "explore browse discover search",
    "about search find query",
    "show reveal display present preview illustrate",
    "find seek detect identify",
    "merge union combine collect gather",
    "split divide separate",
    "increase raise grow scale expand",
    "decrease reduce lower shrink scale",
    "enable activate unlock allow",
    "reject decline deny refuse",
    "ask question query",
    "talk speak discuss mention say message chat",
    "deliver send ship",
    "math multiply subtract calculate number formula",
    "estimate calculate compute",
    "solve solution problem think",
    "teach lesson tutorial explain introduce",
    "refresh reload update",
    "jump go navigate",
    "repeat redo rerun retry",
    "mistake typo spelling wrong edit",
    "broken crash fail error debug",
    "exchange convert currency rate",
    "sync synchronize pull update",
    "protect secure lock",
    "sketch paint painting draw",
    "categorize organize group label sort",
    "deploy release deployment apply",
    "overwrite replace write",
    "swap replace switch",
    "vote poll survey",
    "sister brother mother father son daughter child kid parent wife husband family friend person entity",
    "prefer preference favorite love habit hobby observation",
    "job occupation work employer",
    "journal diary notebook memo note",
    "newspaper headline news article",
    "novel chapter book",
    "museum church cinema theater park beach hospital pharmacy school supermarket gym bank hotel place",
    "house apartment home address",
    "street avenue road highway address route",
    "taxi vehicle van truck car drive",
    "railway ferry shuttle train bus transit",
    "commute trip journey travel tour vacation holiday",
    "mountain hill valley sea elevation altitude",
    "region district country city state",
    "fog frost hail humid ice thunder typhoon hurricane heat umbrella wet sunrise sunset climate weather forecast",
    "morning evening afternoon noon night midnight clock hour time",
    "month year day week date",
    "yesterday recent past history",
    "deadline due date schedule",
    "agenda conference interview party wedding meeting event calendar",
    "worker employee staff colleague manager boss user people",
    "contributor developer author",
    "visitor participant guest member",
    "disk storage space byte megabyte gigabyte size",
    "percent percentage proportion",
    "statistics number data",
    "revenue income profit expense sale budget finance money",
    "receipt invoice bill",
    "inventory stock product item",
    "transaction payment",
    "science scientist scientific academic professor literature study research paper",
    "sentence phrase word text",
    "letter mail",
    "phone telephone mobile call contact",
    "tweet hashtag social post",
    "album gallery photo image",
    "voice speech audio",
    "outage incident status error",
    "webpage page website",
    "software program app package",
    "feature issue request",
    "slide presentation deck powerpoint",
    "structure tree hierarchy layout",
    "slow speed fast performance",
    "part section chapter",
    "keyword term search",
    "parcel delivery express",
    "postcode zip address",
    "definition dictionary meaning",
    "biography founder inventor history encyclopedia wikipedia",
    "addup sum total calculate formula",
    "findout search find",
    "getrid delete remove",
    "writedown notedown remember note write",
    "fillin fillout fill form",
    "signin login authenticate",
    "signup register",
    "carryout execute run",
    "throwaway delete remove",
    "turninto convert transform",
    "goback back previous",
    "drag drop pull",
    "restrict limit validate validation",
    "raise create open",
    "tick checkbox check select click",
    "puzzle riddle problem think",
    "entry record item row page",
    "discard reset undo",
    "jump switch checkout",
    "near nearest closest nearby",
    "recent lately newest latest",
    "healthy alive running status",
    "hang stuck frozen error fail",
    "color red green blue yellow format",
    "bold italic underline font format",
    "curve line trend",
    "bar column histogram",
    "gauge percentage progress",
    "thesis dissertation preprint paper arxiv",
    "brainstorm think idea mind",
    "logic reason think",
    "emoticon emoji reaction",
    "chatroom channel room",
    "macro vba script",
    "subfolder folder directory",
    "ingress service network",
    "cpu ram usage metric resource",
    "cron job schedule",
    "opensource repository github code",
    "javascript js script console",
    "assign assignee owner issue task",
    "sprint backlog kanban milestone board issue ticket task",
    "aside stash shelve checkout",
    "work change commit",
    "disk drive computer laptop desktop folder directory file",
    "logo icon avatar thumbnail image picture",
    "readme cv essay letter draft file document",
    "pointer cursor mouse hover",
    "short brief summary abstract",
    "researcher preprint paper",
    "happen event history log recent",
    "ping notify message send post",
    "married colleague relation",
    "connected connection context link",
    "touch change modify edit modified",
    "profile title role phone contact user",
    "pullup open show read",
    "takeback undo revert reset",
    "catchup history recent message",
    "hearabout watch subscribe alert",
    "propose suggest create request",
    "unsaved uncommitted modified status diff",
    "modified changed status diff",
    "experiment prototype branch",
    "reviewer review comment",
    "complain complaint review issue bug problem",
    "login form field fill type",
    "visible appear see snapshot",
    "wide width resize layout",
    "old age date metadata",
    "thorough comprehensive depth research",
    "include add insert",
    "different difference diff compare",
    "goingon news history recent",
    "takeout crossout remove delete",
    "writeup create write",
    "cleanup clear delete remove",
    "setup create install add",
    "turnoff disable stop",
    "turnon enable start",
    "takeover handover assign assignee owner issue",
    "sumup summarize summary",
    "workout figureout calculate think",
    "putback bringback restore undo revert",
    "readout read extract",
    "argument parameter documentation",
    "takeup size storage",
    "lookthrough search find",
)

_CHINESE: Final = """
读取 read get|阅读 read|读 read|写入 write|写 write|编写 write|保存 save write|创建 create|新建 create|建立 create
生成 generate create|添加 add|增加 add|插入 insert|删除 delete|移除 remove|清除 clear|清空 clear|修改 edit update
编辑 edit|更新 update|替换 replace edit|更改 change|重命名 rename move|改名 rename move|移动 move|复制 copy|拷贝 copy
粘贴 paste|合并 merge|比较 compare diff|对比 compare diff|查看 get view|查询 query search|查找 search find|搜索 search
搜 search|寻找 find search|找 find search|检索 search|获取 get fetch|列出 list|列表 list|显示 show|展示 show
打开 open navigate|关闭 close|启动 start|运行 run|执行 execute run|停止 stop|重启 restart|暂停 pause|取消 cancel
等待 wait|发送 send post|发 send post|发布 publish post|回复 reply|转发 forward|上传 upload|下载 download|导出 export
导入 import|安装 install|卸载 uninstall|部署 deploy deployment|扩容 scale|回滚 rollback undo|撤销 undo reset
恢复 restore|提交 commit submit|推送 push|拉取 pull|克隆 clone|暂存 stage add|点击 click|单击 click|双击 click
按 press|输入 type input|填写 fill|填 fill|选择 select|拖动 drag|拖拽 drag|滚动 scroll|悬停 hover|截图 screenshot
截屏 screenshot|拍照 photo|登录 login|注册 register|翻译 translate|转换 convert|换算 convert|计算 calculate
统计 count statistics|排序 sort|筛选 filter|过滤 filter|总结 summarize|摘要 summary abstract|解释 explain|分析 analyze
思考 think|记住 remember memory|记忆 memory|忘记 forget delete|记下 remember note|通知 notify notification
提醒 remind reminder|预订 book|购买 buy|支付 pay payment|退款 refund|画 draw|绘制 draw generate|绘图 draw chart
文件夹 directory folder|文件 file|目录 directory|路径 path|内容 content|文本 text|文字 text|文档 document|图片 image
图像 image|照片 photo|视频 video|音频 audio|网页 page web|网站 website|网上 web internet|网络 network web
互联网 internet web|浏览器 browser|链接 link url|页面 page|按钮 button click|表单 form|标签页 tab|窗口 window
下拉 dropdown select|弹窗 dialog|控制台 console|数据库 database sql|表格 table|数据 data|表 table|行 row|列 column
单元格 cell|工作表 sheet|工作簿 workbook|电子表格 spreadsheet|公式 formula|图表 chart|柱状图 bar chart
折线图 line chart|饼图 pie chart|流程图 flow diagram|思维导图 mind map|幻灯片 slide presentation|代码 code
仓库 repository|分支 branch|提交记录 commit log history|拉取请求 pull request|合并请求 pull request merge|问题单 issue
问题 issue|工单 ticket issue|缺陷 bug issue|任务 task|待办 todo task|评论 comment|标签 label tag|版本 version commit
日志 log|错误 error|容器 container pod|集群 cluster|节点 node|服务器 server|服务 service|进程 process|端口 port
命令 command|脚本 script|消息 message|信息 information|同事 user message|频道 channel|群 group channel|聊天 chat message
邮件 email mail|邮箱 email|联系人 contact|用户 user|成员 member user|历史 history|记录 record log history
最近 recent last|最新 latest|笔记 note page|日历 calendar|日程 event calendar schedule|会议 meeting event|时间 time
几点 current time|时区 timezone|日期 date|今天 today|明天 tomorrow forecast|现在 current now|天气 weather forecast
温度 temperature|地图 map|地址 address|位置 location|坐标 coordinates|经纬度 coordinates latitude longitude
附近 nearby around local|周边 around nearby|餐厅 restaurant place|餐馆 restaurant place|饭店 restaurant place
酒店 hotel place|路线 route directions|导航 directions navigate|开车 driving drive|驾车 driving|骑车 bicycling bicycle
骑行 bicycling|步行 walking|公交 transit bus|地铁 transit subway|火车 train|距离 distance|多远 distance|新闻 news
资料 information web|文章 article|论文 paper|百科 wikipedia|股票 stock|价格 price|订单 order|客户 customer
产品 product|喜好 preference|偏好 preference|知识 knowledge|实体 entity|关系 relation|大小 size|名称 name
密码 password|权限 permission|设置 settings|配置 configuration config|状态 status|列举 list|字 word text|树 tree
多少 count|哪些 list|谁 user|看看 view get|看 view get|查 search query|改 edit change|删 delete|建 create|加 add
选 select|点 click|存 save|记 remember note|关掉 close|关 close|开 open start|传 upload|退回 back|返回 back
上一页 back previous|后退 back|前进 forward|回话 reply|回 reply|答复 reply|忘 forget delete|忘掉 forget delete
记得 remember memory|拉 pull|推 push|装 install|怎么走 directions route|怎么去 directions route|走 directions walking
去 directions|多久 duration time|名字 name|叫做 name|改成 edit change|改动 changes diff|变化 changes diff
区别 difference diff|差异 difference diff|切换 switch checkout|主分支 main branch|暂存区 stage index|冲突 conflict
作者 author|审查 review|评审 review|批准 approve review|通过 approve|检查 check status|贴 post|帖子 thread post
话题 topic thread|讨论 discussion thread|点赞 reaction emoji|赞 reaction|表情 emoji reaction|大家 user people
说 say message|聊 chat message|私信 direct message|群聊 channel group|公告 announcement post|告诉 tell message
喜欢 preference like|习惯 preference|生日 birthday memory|朋友 friend person|家人 family person|事实 fact observation
自行车 bicycle bicycling|坐车 transit|地铁站 station|车站 station|机场 airport|打车 driving|走路 walking
地方 place location|地点 place location|景点 attraction place|咖啡馆 cafe place|咖啡店 cafe place|商店 shop store
超市 shop place|医院 hospital place|好吃 restaurant food|吃饭 restaurant food|海拔 elevation|高度 height elevation
城市 city|定位 location|下雨 rain weather|下雪 snow weather|刮风 wind weather|大风 wind weather|晴天 weather
气温 temperature weather|冷 weather temperature|热 weather temperature|预报 forecast|预警 alert warning|警报 alert
周末 weekend forecast|后天 forecast|昨天 yesterday history|上网 web internet|网址 url link|抓取 fetch scrape
爬取 crawl|爬 crawl|百度 search web|访问 navigate visit|进入 navigate open|跳转 navigate|刷新 reload refresh
确定 confirm accept|确认 confirm accept|对话框 dialog|提示框 dialog|弹出 dialog|回车 enter key|键盘 keyboard key
快捷键 key press|鼠标 mouse|框 field input|输入框 input field|搜索框 search input|下拉框 dropdown select
选项 option select|勾选 check select|菜单 menu|屏幕 screen|请求 request|接口 api|元素 element|出现 appear wait
纪要 notes|段落 paragraph block|块 block|属性 property|模板 template|副本 replica|扩 scale|缩容 scale|崩溃 crash logs
挂了 crash logs|报错 error logs|失败 fail error|命名空间 namespace|镜像 image|资源 resource|应用 apply application
升级 upgrade|饼状图 pie chart|条形图 bar chart|散点图 scatter chart|雷达图 radar chart|面积图 area chart
词云 word cloud|直方图 histogram|漏斗图 funnel chart|桑基图 sankey chart|箱线图 boxplot|热力图 heatmap
组织架构 organization chart|组织结构图 organization chart|关系图 network graph|鱼骨图 fishbone|时序图 sequence diagram
甘特图 gantt|树图 treemap|图 chart diagram|架构图 architecture diagram|下午 time|上午 time|时差 timezone convert
转成 convert|变成 convert|表头 header row|加粗 bold format|颜色 color format|字体 font format|格式 format
边框 border format|背景色 fill color|高亮 highlight format|求和 sum formula|总和 sum formula|平均 average formula
数字 number|数值 number value|透视表 pivot table|批注 note comment|冻结 freeze panes|去重 duplicate remove|拆分 split
新增 add create|增添 add|电子表 spreadsheet|维基 wikipedia|维基百科 wikipedia|介绍 introduction summary|概述 summary
简介 summary|是谁 wikipedia summary|章节 section|相关 related|主题 topic|引用 citation|参考文献 citation reference
研究 research|订阅 subscribe watch|关注 watch follow|跟踪 track watch|怎么用 documentation usage
用法 usage documentation|教程 tutorial documentation|使用方法 usage documentation|函数 function|库 library
框架 framework library|包 package|一步一步 step|逐步 step|想 think|推理 reasoning think|规划 plan|计划 plan
难题 problem|多大 size|桌面 desktop directory|批量 multiple|多个 multiple|提 create|报告 report issue|负责人 assignee
指派 assign|收藏 star favorite|找到 find search|找出 find search|哪里 location find|在哪 location find
有没有 list search|发给 send|邮寄 mail|附件 attachment|约 schedule event|会议室 meeting room|闹钟 alarm|音乐 music
歌 song music|播放 play|灯 light|电影 movie|快递 express delivery|物流 delivery|车票 ticket|机票 flight ticket
火车票 train ticket|汇率 exchange rate|钱 money payment|账单 bill invoice|发票 invoice|合同 contract
员工 employee user|部门 department|公司 company organization|老板 manager|识别 recognize|语音 voice audio|录音 audio
字幕 subtitle|打印 print|压缩 compress zip|解压 extract unzip|加密 encrypt|备份 backup|同步 sync|测试 test|调试 debug
编译 build compile|构建 build|发版 release|网关 gateway|域名 domain|监控 monitor metrics|指标 metrics|告警 alert
页 page|去掉 remove|端口转发 port forward|挪 move|搬 move|撤回 undo reset|撤消 undo reset|加载 load wait|等 wait
合 merge|拼 merge combine|拆 split|抄 copy|清理 clean delete|扔掉 delete|丢弃 discard reset|去除 remove|取出 extract
提取 extract|抽取 extract|整理 organize|归档 archive move|标记 mark label|染色 color format|放大 resize|缩小 resize
调整 adjust resize|改变 change|变更 change diff|上线 release deploy|开启 enable start|停 stop|杀掉 kill delete
登陆 login|退出 exit logout|报名 register|审批 approve|驳回 reject|同意 accept approve|拒绝 reject dismiss
询问 ask query|问 ask query|回答 answer reply|告知 notify message|提到 search mention|交流 discussion|群组 group channel
房间 room channel|话 message|讲 explain summary|说明 explain documentation|描述 describe|详情 detail describe
细节 detail|概况 overview summary|总览 overview|人物 person|哥哥 brother person|姐姐 sister person|弟弟 brother person
妹妹 sister person|父母 parent person|爸爸 father person|妈妈 mother person|孩子 child person|别忘 remember memory
牢记 remember memory|备忘 note memo|便签 note|日记 journal note|图书馆 place|学校 school place|公园 park place
银行 bank place|药店 pharmacy place|加油站 place|宾馆 hotel place|美食 restaurant food|路 route road|路况 traffic
堵车 traffic|公里 kilometer distance|远 far distance|近 near|周围 around nearby|旁边 nearby|伞 rain weather
台风 typhoon storm|暴雨 rain storm|雪 snow weather|雨 rain weather|风 wind weather|湿度 humidity weather
空气 air weather|网 web|浏览 browse view|官网 website|谷歌 google search|正文 content text|源码 source code
敲 press type|键 key|勾 check click|滑动 scroll|图标 icon|宽度 width|尺寸 size|标题 title|大纲 outline
份额 share proportion|占比 proportion percentage|比例 proportion ratio|趋势 trend line|走势 trend line
增长 growth trend|分布 distribution|对照 compare|架构 structure architecture|层级 hierarchy|因果 cause effect
时刻 time|钟 clock time|早上 morning time|晚上 evening time|中午 noon time|空白 empty create|格子 cell|格 cell
合计 sum total|汇总 summarize total|排列 sort|升序 sort|降序 sort|黄色 color format|红色 color format
斜体 italic format|居中 align format|期刊 journal paper|文献 paper literature|学术 academic paper|科学 science paper
全文 full text|原文 original text|谜题 puzzle problem|想想 think|考虑 consider think|段 paragraph block
曲线 line chart|绿色 color format|蓝色 color format|卡住 error fail|健康 status|宏 vba macro|账号 account user
帐号 account user|密钥 key secret|报表 report table|进度 progress status|需求 issue|漏洞 bug issue|修复 fix edit
回退 revert undo|草稿 draft|审核 review|星期 date week|小时 hour time|分钟 minute time|导图 mind map|拼写 spelling
首页 home page|收件箱 inbox email|联网 internet web|子目录 directory|改写 rewrite edit|追加 append add
覆盖 overwrite write|最新版 latest version|谁写 author|发言 message post|群消息 channel message
聊天记录 channel history|路线图 route map|高铁 train|飞机 flight|导出成 export|换成 replace convert|转为 convert
画图 draw chart|列宽 column width|筛 filter|数一数 count|数据源 data source|放进 move put|放到 move put
放入 move put|切 switch checkout|差 difference diff|词条 article wikipedia
科普 wikipedia summary|定义 definition|参数 parameter|错别字 typo edit|什么时候 date time|何时 date time
几度 temperature weather|停车场 parking place
记得 remember memory|还记得 memory search
"""
#: Common Chinese words, and the English words that tools have for them.
CHINESE: Final = {
    entry.split()[0]: tuple(entry.split()[1:]) for entry in _CHINESE.replace("\n", "|").split("|") if entry.strip()
}
